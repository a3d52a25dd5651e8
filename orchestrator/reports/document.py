"""The report as data, the form that other programs read: `--format json`, `report.schema.json`."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pydantic

from jobs.contract import (
    Attempt,
    AttentionGroup,
    BuildSpec,
    EngineMode,
    Isolation,
    MoeGroup,
    Rejection,
)
from orchestrator.cells import Cell
from orchestrator.classify import taxonomy
from orchestrator.config import RequestVerdict
from orchestrator.gate import Decision
from orchestrator.judge import Verdict, one_line_cause
from orchestrator.matrix import Matrix
from orchestrator.records import Record


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRow:
    asked: str | None
    got: str | None
    verdict: RequestVerdict


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildRow:
    name: str
    origin: str
    """Where its code comes from: `release 0.32.0`, `wheel FILE`, `interpreter PYTHON`."""

    checkout: str | None
    digest: str | None
    """None where the build was never made ready."""

    vllm_version: str | None
    patches: dict[str, str] = field(default_factory=dict)
    """Patch name to the SHA-256 of its text."""

    sources: dict[str, str] = field(default_factory=dict)
    """Patched files to the SHA-256 that the probe found where vLLM was imported from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementRow:
    node: str
    labels: dict[str, str]
    devices: tuple[str, ...]
    device: dict[str, str]
    """The device as vLLM saw it."""

    isolation: Isolation


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRow:
    category: str
    owner: str
    phase: str | None
    """The phase it happened in; None where the engine ran, but not on what was asked."""

    cause: str
    """One line: type and message of the innermost exception, or how the process ended."""

    next: str
    """What to do about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellRow:
    id: str
    hardware: str
    model: str
    backend: str
    verdict: Verdict
    category: str | None
    """The kind of failure seen; also of a passed cell, where the failure was expected."""

    reasons: tuple[str, ...]
    """Why it did not pass."""

    waived: bool
    engine_mode: EngineMode
    check: str
    outcome: str | None
    requests: dict[str, RequestRow]
    target: tuple[AttentionGroup, ...] = ()
    draft: tuple[AttentionGroup, ...] = ()
    target_moe: tuple[MoeGroup, ...] = ()
    draft_moe: tuple[MoeGroup, ...] = ()
    kv_layout: str | None = None
    runner: str | None = None
    phases: dict[str, float] = field(default_factory=dict)
    """Phase to seconds, in order."""

    seconds: float | None = None
    attempts: int = 0
    failure: FailureRow | None = None
    rejections: tuple[Rejection, ...] = ()
    build: BuildRow
    placement: PlacementRow | None = None
    versions: dict[str, str] = field(default_factory=dict)
    log: str | None = None
    """The probe's output; a path inside the run directory is relative to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRow:
    ships: bool
    sentence: str
    blockers: tuple[str, ...]
    waived: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    schema_version: Literal[1] = 1
    run: str
    suite: str
    gate: GateRow
    cells: tuple[CellRow, ...]


_adapter = pydantic.TypeAdapter(Document)


def build(run: str, suite: str, matrix: Matrix, decision: Decision) -> Document:
    waived = {each.cell_id for each in decision.waived}
    return Document(
        run=run,
        suite=suite,
        gate=GateRow(
            ships=decision.ships,
            sentence=decision.sentence(),
            blockers=tuple(blocker.cell_id for blocker in decision.blockers),
            waived=tuple(each.cell_id for each in decision.waived),
        ),
        cells=tuple(_row(matrix, cell, waived=cell.id in waived) for cell in matrix.cells),
    )


def to_json(report: Document) -> str:
    return _adapter.dump_json(report, indent=1).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of `--format json`; docs/report.schema.json is a copy of it."""
    return _adapter.json_schema(mode="serialization")


def _row(matrix: Matrix, cell: Cell, *, waived: bool) -> CellRow:
    record = matrix.record(cell)
    row = CellRow(
        id=cell.id,
        hardware=cell.axis("hardware"),
        model=cell.axis("model"),
        backend=cell.axis("backend"),
        verdict=matrix.verdict(cell),
        category=record.judgement.category if record else None,
        reasons=matrix.reasons(cell),
        waived=waived,
        engine_mode=cell.engine_mode,
        check=cell.check,
        outcome=record.judgement.outcome if record else None,
        requests=_requests(record),
        build=_build(cell, record),
    )
    return row if record is None else _with_attempt(row, record)


def _with_attempt(row: CellRow, record: Record) -> CellRow:
    """What the node and the probe saw, where there was an attempt."""
    attempt = record.attempt
    if attempt is None:
        return row
    row = dataclasses.replace(
        row,
        seconds=round(attempt.seconds, 3),
        attempts=len(record.earlier) + 1,
        failure=_failure(record),
        log=_inside(attempt),
    )
    if (report := attempt.report) is None:
        return row
    return dataclasses.replace(
        row,
        target=report.target,
        draft=report.draft,
        target_moe=report.target_moe,
        draft_moe=report.draft_moe,
        kv_layout=report.engine.kv_layout,
        runner=report.engine.runner,
        phases={time.phase: round(time.seconds, 3) for time in report.phases},
        rejections=report.rejections,
        versions=report.versions,
        placement=PlacementRow(
            node=attempt.placement.node,
            labels=attempt.placement.labels,
            devices=attempt.placement.devices,
            device=report.device,
            isolation=attempt.isolation,
        ),
    )


def _inside(attempt: Attempt) -> str:
    """Relative to the run directory where it lies in one, so that a run can be moved."""
    inside = f"cells/{attempt.cell_id}/{attempt.number}/{Path(attempt.log).name}"
    return inside if attempt.log.endswith(f"/{inside}") else attempt.log


def _requests(record: Record | None) -> dict[str, RequestRow]:
    if record is None:
        return {}
    return {
        name: RequestRow(asked=request.asked, got=request.got, verdict=request.verdict)
        for name, request in record.judgement.requests.items()
    }


def _build(cell: Cell, record: Record | None) -> BuildRow:
    build = record.build if record else None
    report = record.attempt.report if record and record.attempt else None
    return BuildRow(
        name=cell.build.name,
        origin=_origin(cell.build),
        checkout=cell.build.checkout,
        digest=build.digest if build else None,
        vllm_version=build.vllm_version if build else None,
        patches={patch.name: patch.sha256 for patch in cell.build.patches},
        sources=report.sources if report else {},
    )


def _origin(build: BuildSpec) -> str:
    if build.release is not None:
        return f"release {build.release}"
    return f"wheel {build.wheel}" if build.wheel else f"interpreter {build.interpreter}"


def _failure(record: Record) -> FailureRow | None:
    attempt, category = record.attempt, record.judgement.category
    if attempt is None or category is None:
        return None
    kind = taxonomy().categories[category]
    ran = record.judgement.outcome == "runs"
    return FailureRow(
        category=category,
        owner=kind.owner,
        phase=None if ran else attempt.phase,
        cause="; ".join(record.judgement.reasons) if ran else one_line_cause(attempt),
        next=kind.next,
    )
