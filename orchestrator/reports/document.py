"""The report as data, the form that other programs read: `--format json`, `report.schema.json`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pydantic

from jobs.contract.emulation import Emulated
from orchestrator.asked.policies import ConcernKind, Waiver
from orchestrator.concluded.changes import Change, between_releases
from orchestrator.concluded.concerns import Concern
from orchestrator.concluded.gate import Decision
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.predictions import Disagreement
from orchestrator.concluded.proof import Arm, Demonstration, Regression, Standing, arms
from orchestrator.concluded.waivers import Trouble
from orchestrator.reports import difference, filling
from orchestrator.reports.difference import ComparisonRow
from orchestrator.reports.rows import CellRow

Effect = Literal["blocks", "waived", "tolerated"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcernRow:
    """Something that may keep the release from being shipped."""

    kind: ConcernKind
    effect: Effect
    cell_id: str | None
    """None: it is of a card, or of the run as a whole."""

    verdict: Verdict | None
    category: str | None
    reason: str
    since: str | None
    """The vLLM that it is seen with, where the baseline has another."""

    waiver: Waiver | None = None
    """That excuses it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RemarkRow:
    """What is wrong with a waiver."""

    trouble: Trouble
    blocks: bool
    text: str
    cells: tuple[str, ...]
    waiver: Waiver


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRow:
    ships: bool
    sentence: str
    blockers: tuple[str, ...]
    """Cells."""

    waived: tuple[str, ...]
    """Cells."""

    policy: str = ""
    concerns: tuple[ConcernRow, ...] = ()
    """What blocks first, and of that the gravest."""

    remarks: tuple[RemarkRow, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofRow:
    """What the run says about the claim of its suite."""

    claim: str
    standing: Standing
    sentence: str
    arms: dict[str, Arm]
    """The builds that are compared, each with its part."""

    cards: tuple[str, ...]
    proven_on: tuple[str, ...]
    reasons: tuple[str, ...]
    """What speaks against the claim, or is missing for it."""

    cells: tuple[str, ...]
    """The cells that the claim is about, of every build."""

    regressions: tuple[Regression, ...]
    """What passed without the fix and fails with it."""

    attempts: tuple[Regression, ...]
    """What passes with the fix and fails with another attempt at it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    schema_version: Literal[1] = 1
    run: str
    suite: str
    gate: GateRow
    proof: ProofRow | None = None
    cells: tuple[CellRow, ...]
    comparison: ComparisonRow | None = None
    """With the gate's baseline, if it has one."""

    changes: tuple[Change, ...] = ()
    """What changed from one vLLM release to the next, where several were run."""

    disagreements: tuple[Disagreement, ...] = ()
    """Where emulated engines and real cards differ."""

    confirmed: tuple[str, ...] = ()
    """Emulated cells of which a real card did the very same."""

    emulations: dict[str, Emulated] = field(default_factory=dict)
    """What was not real, by the name that a cell's `emulated` has."""


_adapter = pydantic.TypeAdapter(Document)


def build(run: str, suite: str, matrix: Matrix, decision: Decision) -> Document:
    waived = {each.concern.cell_id for each in decision.waived}
    demonstration = decision.demonstration
    parts = arms(demonstration.proof) if demonstration is not None else {}
    return Document(
        run=run,
        suite=suite,
        gate=_gate(decision),
        proof=_proof(demonstration) if demonstration is not None else None,
        cells=tuple(
            filling.row(matrix, cell, waived=cell.id in waived, arm=parts.get(cell.build.name))
            for cell in matrix.cells
        ),
        comparison=difference.row(decision.comparison, matrix) if decision.comparison else None,
        # A proof compares its builds in a table of its own.
        changes=between_releases(matrix) if demonstration is None else (),
        disagreements=matrix.disagreements,
        confirmed=matrix.confirmed,
        emulations=dict(_emulations(matrix)),
    )


def to_json(report: Document) -> str:
    return _adapter.dump_json(report, indent=1).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of `--format json`; docs/report.schema.json is a copy of it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_open(_adapter.json_schema(mode="serialization")),
    }


def _open(part: Any) -> Any:
    """A reader takes fields that come later, also of what is strict where it comes from."""
    match part:
        case dict():
            closed = part.get("additionalProperties") is False
            return {
                key: _open(value)
                for key, value in part.items()
                if not (closed and key == "additionalProperties")
            }
        case list():
            return [*map(_open, part)]
        case _:
            return part


def _gate(decision: Decision) -> GateRow:
    return GateRow(
        ships=decision.ships,
        sentence=decision.sentence(),
        blockers=_cells(decision.blockers),
        waived=_cells(each.concern for each in decision.waived),
        policy=decision.policy,
        concerns=(
            *(_concern(each, "blocks") for each in decision.blockers),
            *(_concern(each.concern, "waived", each.waiver) for each in decision.waived),
            *(_concern(each, "tolerated") for each in decision.tolerated),
        ),
        remarks=tuple(
            RemarkRow(
                trouble=each.trouble,
                blocks=each.blocks,
                text=each.text,
                cells=each.cells,
                waiver=each.waiver,
            )
            for each in decision.remarks
        ),
    )


def _cells(concerns: Iterable[Concern]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.cell_id for each in concerns if each.cell_id is not None))


def _concern(concern: Concern, effect: Effect, waiver: Waiver | None = None) -> ConcernRow:
    return ConcernRow(
        kind=concern.kind,
        effect=effect,
        cell_id=concern.cell_id,
        verdict=concern.verdict,
        category=concern.category,
        reason=concern.reason,
        since=concern.since,
        waiver=waiver,
    )


def _proof(demonstration: Demonstration) -> ProofRow:
    return ProofRow(
        claim=demonstration.proof.claim,
        standing=demonstration.standing,
        sentence=demonstration.sentence(),
        arms=arms(demonstration.proof),
        cards=demonstration.cards,
        proven_on=demonstration.proven_on,
        reasons=demonstration.reasons,
        cells=demonstration.cells,
        regressions=demonstration.regressions,
        attempts=demonstration.attempts,
    )


def _emulations(matrix: Matrix) -> Iterator[tuple[str, Emulated]]:
    for cell in matrix.cells:
        record = matrix.record(cell)
        report = record.attempt.report if record and record.attempt else None
        if report is not None and report.emulated is not None:
            yield filling.emulation_name(report.emulated), report.emulated
