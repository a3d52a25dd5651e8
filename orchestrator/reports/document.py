"""The report as data, the form that other programs read: `--format json`, `report.schema.json`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pydantic

from jobs.contract.emulation import Emulated
from orchestrator.concluded.changes import Change, between_releases
from orchestrator.concluded.gate import Decision
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.predictions import Disagreement
from orchestrator.concluded.proof import Arm, Demonstration, Regression, Standing, arms
from orchestrator.reports import filling
from orchestrator.reports.rows import CellRow


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRow:
    ships: bool
    sentence: str
    blockers: tuple[str, ...]
    waived: tuple[str, ...]


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
    waived = {each.cell_id for each in decision.waived}
    demonstration = decision.demonstration
    parts = arms(demonstration.proof) if demonstration is not None else {}
    return Document(
        run=run,
        suite=suite,
        gate=GateRow(
            ships=decision.ships,
            sentence=decision.sentence(),
            blockers=tuple(dict.fromkeys(blocker.cell_id for blocker in decision.blockers)),
            waived=tuple(each.cell_id for each in decision.waived),
        ),
        proof=_proof(demonstration) if demonstration is not None else None,
        cells=tuple(
            filling.row(matrix, cell, waived=cell.id in waived, arm=parts.get(cell.build.name))
            for cell in matrix.cells
        ),
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
    return _adapter.json_schema(mode="serialization")


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
