"""From a matrix to the rows of a report."""

import dataclasses
import hashlib
import json
from pathlib import Path

from jobs.contract.attempts import Attempt
from jobs.contract.builds import BuildSpec
from jobs.contract.emulation import Emulated
from orchestrator.asked.cell_requests import asked
from orchestrator.asked.cells import Cell
from orchestrator.concluded import causes, speed
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.proof import Arm
from orchestrator.concluded.record import Record
from orchestrator.reports.rows import BuildRow, CellRow, FailureRow, PlacementRow, RequestRow
from orchestrator.taxonomy import taxonomy


def row(matrix: Matrix, cell: Cell, *, waived: bool, arm: Arm | None) -> CellRow:
    record = matrix.record(cell)
    asked_and_concluded = CellRow(
        id=cell.id,
        hardware=cell.axis("hardware"),
        model=cell.axis("model"),
        backend=cell.axis("backend"),
        verdict=matrix.verdict(cell),
        category=record.judgement.category if record else None,
        reasons=matrix.reasons(cell),
        waived=waived,
        arm=arm,
        engine_mode=cell.engine_mode,
        check=cell.check,
        asked={name: value for name, value in asked(cell).items() if value is not None},
        outcome=record.judgement.outcome if record else None,
        requests=_requests(record),
        build=_build(cell, record),
    )
    if record is None:
        return asked_and_concluded
    return _with_attempt(asked_and_concluded, cell, record)


def _with_attempt(row: CellRow, cell: Cell, record: Record) -> CellRow:
    """What the node and the probe saw, where there was an attempt."""
    attempt = record.attempt
    if attempt is None:
        return row
    row = dataclasses.replace(
        row,
        seconds=round(attempt.seconds, 3),
        attempts=len(record.earlier) + max(1, len(record.rounds)),
        failure=_failure(cell, record),
        kept_from=record.kept_from,
        speed=speed.measured(record.rounds),
        log=_inside(attempt) if record.kept_from is None else attempt.log,
    )
    if (report := attempt.report) is None:
        return row
    return dataclasses.replace(
        row,
        ranks=report.ranks,
        target=report.target,
        draft=report.draft,
        target_moe=report.target_moe,
        draft_moe=report.draft_moe,
        kv_layout=report.engine.kv_layout,
        runner=report.engine.runner,
        phases={time.phase: round(time.seconds, 3) for time in report.phases},
        rejections=report.rejections,
        selections=report.selections,
        emulated=None if report.emulated is None else emulation_name(report.emulated),
        versions=report.versions,
        placement=PlacementRow(
            node=attempt.placement.node,
            labels=attempt.placement.labels,
            devices=attempt.placement.devices,
            others=attempt.placement.others,
            device=report.device,
            isolation=attempt.isolation,
        ),
    )


def emulation_name(emulated: Emulated) -> str:
    """Short, and the same for cells with the very same things not real."""
    content = json.dumps(dataclasses.asdict(emulated), sort_keys=True)
    return f"{emulated.card.name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def _inside(attempt: Attempt) -> str:
    """Relative to the run directory where it lies in one, so that a run can be moved."""
    inside = f"cells/{attempt.cell_id}/{attempt.number}/{Path(attempt.log).name}"
    return inside if attempt.log.endswith(f"/{inside}") else attempt.log


def _requests(record: Record | None) -> dict[str, RequestRow]:
    requests = record.judgement.requests if record else {}
    return {
        name: RequestRow(asked=request.asked, got=request.got, verdict=request.verdict)
        for name, request in requests.items()
    }


def _build(cell: Cell, record: Record | None) -> BuildRow:
    build = record.build if record else None
    report = record.attempt.report if record and record.attempt else None
    applied = build.patches if build else {}  # our copy may lack secrets that the text holds
    return BuildRow(
        name=cell.build.name,
        origin=_origin(cell.build),
        checkout=cell.build.checkout,
        digest=build.digest if build else None,
        vllm_version=build.vllm_version if build else None,
        patches={patch.name: applied.get(patch.name) for patch in cell.build.patches},
        sources=report.sources if report else {},
    )


def _origin(build: BuildSpec) -> str:
    if build.release is not None:
        return f"release {build.release}"
    return f"wheel {build.wheel}" if build.wheel else f"interpreter {build.interpreter}"


def _failure(cell: Cell, record: Record) -> FailureRow | None:
    attempt, category = record.attempt, record.judgement.category
    if attempt is None or category is None:
        return None
    kind = taxonomy().categories[category]
    ran = record.judgement.outcome == "runs"
    return FailureRow(
        category=category,
        owner=kind.owner,
        phase=None if ran else attempt.phase,
        cause="; ".join(record.judgement.reasons)
        if ran
        else causes.one_line(cell, attempt, category),
        next=kind.next,
        excerpt=() if ran else causes.excerpt(attempt),
    )
