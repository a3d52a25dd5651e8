"""What may keep a release from being shipped, cell by cell. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.contract.terms import EngineMode
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Proof
from orchestrator.asked.policies import ChangeKind, ConcernKind
from orchestrator.concluded import kinds
from orchestrator.concluded.comparison import CellChange, Comparison
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.kinds import Known
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.proof import Demonstration, Standing, is_witness
from orchestrator.taxonomy import PREDICTION_DIFFERS, says_nothing_of_vllm


@dataclass(frozen=True, kw_only=True, slots=True)
class Concern:
    kind: ConcernKind
    reason: str
    cell_id: str | None = None
    """None: it is of a card, or of the run as a whole."""

    verdict: Verdict | None = None
    category: str | None = None
    place: str | None = None
    """`gfx942`, or `emulated gfx942`."""

    since: str | None = None
    """The vLLM that it is seen with, where the baseline has another."""


_OF_A_PASS = (
    ChangeKind.REGRESSED,
    ChangeKind.NO_VERDICT,
    ChangeKind.FLAKY,
    ChangeKind.DRIFT,
    ChangeKind.NO_BASELINE,
)
"""What may be wrong with a cell that passes: it is slower, or nobody knows."""


def found(
    matrix: Matrix,
    *,
    comparison: Comparison | None = None,
    proof: Proof | None = None,
    demonstration: Demonstration | None = None,
) -> Iterator[Concern]:
    """All of them, in the order of the cells."""
    changes = {change.cell_id: change for change in comparison.cells} if comparison else {}
    for cell in matrix.cells:
        known = kinds.known(matrix, cell)
        yield from _mistaken(known)
        if not (is_witness(cell, proof) and known.verdict is not Verdict.NOT_RUN):
            yield from _of_cell(known, changes.get(cell.id))
    if comparison is not None:
        yield from _of_baseline(comparison)
    if demonstration is not None:
        yield from _of_claim(demonstration)


def place(cell: Cell) -> str:
    arch = cell.hardware.arch or cell.axis("hardware")
    return f"emulated {arch}" if cell.engine_mode is EngineMode.EMULATED else arch


def _mistaken(known: Known) -> Iterator[Concern]:
    """Of a cell whose emulated engine did something else than a real card, whatever its verdict."""
    if known.mispredicted:
        yield Concern(
            kind=ConcernKind.MISPREDICTED,
            reason="; ".join(known.mispredicted),
            cell_id=known.cell.id,
            verdict=known.verdict,
            category=PREDICTION_DIFFERS,
            place=place(known.cell),
        )


def _of_cell(known: Known, change: CellChange | None) -> Iterator[Concern]:
    kind = _kind(known, change)
    if kind is None:
        return
    broken = _regressed(change) if kind is ConcernKind.REGRESSED else ""
    why = change.reason if change else "; ".join(known.failed_first or known.reasons)
    drift = "; ".join(map(str, change.differences)) if change else ""
    yield Concern(
        kind=kind,
        reason=broken or (drift if kind is ConcernKind.DRIFT else why),
        cell_id=known.cell.id,
        verdict=known.verdict,
        category=known.category if known.verdict is not Verdict.PASSED else None,
        place=place(known.cell),
        since=_since(change) if change else None,
    )


def _kind(known: Known, change: CellChange | None) -> ConcernKind | None:
    if known.verdict is Verdict.NOT_RUN:
        return ConcernKind.NOT_RUN
    if known.verdict is Verdict.FAILED:
        return _of_failure(known, change)
    if known.mispredicted:
        return None
    if change is None:
        return ConcernKind.FLAKY if known.failed_first else None
    return ConcernKind(change.kind) if change.kind in _OF_A_PASS else None


def _of_failure(known: Known, change: CellChange | None) -> ConcernKind:
    if says_nothing_of_vllm(known.category):
        return ConcernKind.INFRASTRUCTURE
    if change is None:
        return ConcernKind.FAILED
    if change.kind is ChangeKind.REGRESSED or _regressed(change):
        return ConcernKind.REGRESSED
    return (
        ConcernKind.BROKEN_BEFORE if change.kind is ChangeKind.BROKEN_BEFORE else ConcernKind.FAILED
    )


def _regressed(change: CellChange | None) -> str:
    """What was kept of a cell that was broken before, and is not any more."""
    if change is None or change.kind is not ChangeKind.BROKEN_BEFORE:
        return ""
    return "; ".join(
        f"{field} was {each.before.verdict}, now {each.after.verdict}: "
        f"asked {each.after.asked or 'nothing'}, got {each.after.got or 'nothing'}"
        for field, each in change.requests.items()
        if each.kind is ChangeKind.REGRESSED and each.before and each.after
    )


def _since(change: CellChange) -> str | None:
    before = change.before.vllm_version if change.before else None
    after = change.after.vllm_version
    return after if before is not None and before != after else None


def _of_baseline(comparison: Comparison) -> Iterator[Concern]:
    for cell_id in comparison.gone:
        yield Concern(
            kind=ConcernKind.GONE,
            reason=f"{comparison.base} has it, and nobody asks it of {comparison.candidate}",
            cell_id=cell_id,
        )
    if comparison.gone and not comparison.has_common_ground:
        yield Concern(
            kind=ConcernKind.BASELINE,
            reason=f"{comparison.candidate} asks nothing that {comparison.base} does",
        )


def _of_claim(demonstration: Demonstration) -> Iterator[Concern]:
    if demonstration.standing is not Standing.PROVEN:
        yield Concern(kind=ConcernKind.CLAIM, reason=f"the claim is {demonstration.standing}")
    for each in demonstration.regressions:
        yield Concern(
            kind=ConcernKind.BROKEN_BY_FIX,
            reason=f"passes with {each.passes_with}: {each.reason}",
            cell_id=each.cell_id,
            verdict=Verdict.FAILED,
            category=each.category,
        )
