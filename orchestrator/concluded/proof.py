"""Does a run prove its suite's claim? Pure: a matrix and the builds to compare in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Proof
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.matrix import Matrix
from orchestrator.taxonomy import says_nothing_of_vllm

Arm = Literal["before", "after", "reverted", "attempt"]


class Standing(StrEnum):
    PROVEN = "proven"
    NOT_PROVEN = "not proven"
    INCOMPLETE = "incomplete"
    """Nothing speaks against the claim, but something it needs was not seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Regression:
    """A cell that passes with one build and fails with another."""

    cell_id: str
    """Of the cell that fails."""

    passes_with: str
    category: str | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Demonstration:
    """What a run says about a claim."""

    proof: Proof
    standing: Standing
    cards: tuple[str, ...]
    """Every card that the claim is about, `h100-emulated` where it is emulated."""

    proven_on: tuple[str, ...]
    cells: tuple[str, ...]
    """The cells that the claim is about, of every build that is compared."""

    reasons: tuple[str, ...]
    """What speaks against the claim, or is missing for it, cell by cell."""

    regressions: tuple[Regression, ...]
    """Of the fix itself: what passed without it and fails with it."""

    attempts: tuple[Regression, ...]
    """Of the other attempts, against the fix. They cost nothing: nobody ships them."""

    def sentence(self) -> str:
        """The whole answer in one sentence."""
        where = f"on {len(self.proven_on)} of {len(self.cards)} cards"
        return f"{self.standing}: {self.proof.claim}, {where}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Objection:
    card: str
    standing: Standing
    reason: str


Question = Mapping[str, Cell]
"""The cells that differ in their build alone, by build."""


def weigh(matrix: Matrix, proof: Proof) -> Demonstration:
    """The claim stands if, on every card, its cells fail without the fix and pass with it."""
    questions = _by_question(matrix.cells)
    claimed = [arms for arms in questions if _is_claimed(arms, proof)]
    objections = [each for arms in claimed for each in _objections(matrix, proof, arms)]
    cards = [*dict.fromkeys(map(_card, claimed))]
    doubtful = {objection.card for objection in objections}
    bases = [proof.before, *([proof.reverted] if proof.reverted else [])]
    return Demonstration(
        proof=proof,
        standing=_standing(claimed, objections),
        cards=tuple(cards),
        proven_on=tuple(card for card in cards if card not in doubtful),
        cells=tuple(
            cell.id for arms in claimed for build, cell in arms.items() if build in proof.builds
        ),
        reasons=tuple(objection.reason for objection in objections)
        or (() if claimed else (f"no cell of this run matches {proof.cells}",)),
        regressions=tuple(_regressions(matrix, questions, bases, [proof.after])),
        attempts=tuple(_regressions(matrix, questions, [proof.after], proof.attempts)),
    )


def arms(proof: Proof) -> dict[str, Arm]:
    """The builds that are compared, each with its part."""
    parts: dict[str, Arm] = {proof.before: "before", proof.after: "after"}
    if proof.reverted is not None:
        parts[proof.reverted] = "reverted"
    return {**parts, **dict.fromkeys(proof.attempts, "attempt")}


def is_witness(cell: Cell, proof: Proof | None) -> bool:
    """Whether a cell is there to fail: it is of a build that nobody means to ship."""
    return proof is not None and arms(proof).get(cell.build.name, "after") != "after"


def _by_question(cells: Iterable[Cell]) -> list[Question]:
    """Cells that ask the same of different builds, together."""
    questions: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        questions.setdefault(cell_ids.question(cell.id), {})[cell_ids.build(cell.id)] = cell
    return [*questions.values()]


def _is_claimed(arms: Question, proof: Proof) -> bool:
    return any(
        build in proof.builds and fnmatchcase(cell.id, proof.cells) for build, cell in arms.items()
    )


def _card(arms: Question) -> str:
    return cell_ids.card(next(iter(arms.values())).id)


def _standing(claimed: Sequence[Question], objections: Iterable[_Objection]) -> Standing:
    seen = {objection.standing for objection in objections}
    if Standing.NOT_PROVEN in seen:
        return Standing.NOT_PROVEN
    return Standing.INCOMPLETE if seen or not claimed else Standing.PROVEN


def _objections(matrix: Matrix, proof: Proof, arms: Question) -> Iterator[_Objection]:
    """Everything that keeps the cells of one question from proving the claim."""
    card, question = _card(arms), cell_ids.question(next(iter(arms.values())).id)
    wanted = {proof.before: Verdict.FAILED, proof.after: Verdict.PASSED}
    if proof.reverted is not None:
        wanted[proof.reverted] = Verdict.FAILED
    for build, verdict in wanted.items():
        if build not in arms:
            reason = f"{question} is not part of the run with {build}"
            yield _Objection(card=card, standing=Standing.INCOMPLETE, reason=reason)
        elif missing := _not_seen(matrix, arms[build]):
            yield _Objection(card=card, standing=Standing.INCOMPLETE, reason=missing)
        elif matrix.verdict(arms[build]) is not verdict:
            reason = _contradiction(matrix, arms[build])
            yield _Objection(card=card, standing=Standing.NOT_PROVEN, reason=reason)
        elif verdict is Verdict.FAILED and (other := _other_failure(matrix, proof, arms[build])):
            yield _Objection(card=card, standing=Standing.INCOMPLETE, reason=other)
    held = {repr(arms[build].expectation) for build in wanted if build in arms}
    if len(held) > 1:
        reason = f"{question} is held against another expectation with one build than with another"
        yield _Objection(card=card, standing=Standing.NOT_PROVEN, reason=reason)


def _not_seen(matrix: Matrix, cell: Cell) -> str | None:
    """Why the cell says nothing about vLLM, if it does not."""
    why = "; ".join(matrix.reasons(cell))
    if matrix.verdict(cell) is Verdict.NOT_RUN:
        return f"{cell.id} was not run: {why}"
    if matrix.verdict(cell) is Verdict.FAILED and not _fails(matrix, cell):
        return f"{cell.id} says nothing about vLLM ({_category(matrix, cell)}): {why}"
    return None


BROKEN_REQUEST = ("silent_fallback", "inheritance_broken", "expectation_unmet")
"""Failures of an engine that ran."""


def _other_failure(matrix: Matrix, proof: Proof, cell: Cell) -> str | None:
    """A build that is broken, or slow, fails every check: it must fail as the claim has it."""
    category = _category(matrix, cell)
    if category == proof.category or (proof.category is None and category in BROKEN_REQUEST):
        return None
    wanted = proof.category or " or ".join(BROKEN_REQUEST)
    why = "; ".join(matrix.reasons(cell))
    return (
        f"{cell.id} fails for another reason than the claim's, {category} and not {wanted}: {why}"
    )


def _fails(matrix: Matrix, cell: Cell) -> bool:
    """Whether it failed for a reason of vLLM's own: not the emulation's, and not the cluster's."""
    foreign = says_nothing_of_vllm(_category(matrix, cell))
    return matrix.verdict(cell) is Verdict.FAILED and not foreign


def _contradiction(matrix: Matrix, cell: Cell) -> str:
    if matrix.verdict(cell) is Verdict.PASSED:
        return f"{cell.id} passes without the fix: the check is vacuous there"
    return f"{cell.id} fails with the fix: {'; '.join(matrix.reasons(cell))}"


def _regressions(
    matrix: Matrix, questions: Iterable[Question], bases: Iterable[str], builds: Iterable[str]
) -> Iterator[Regression]:
    """What passes with one of *bases* and fails with one of *builds*; each cell once."""
    bases = [*bases]
    for build in builds:
        for arms in questions:
            passing = [
                base
                for base in bases
                if base in arms and matrix.verdict(arms[base]) is Verdict.PASSED
            ]
            cell = arms.get(build)
            if passing and cell is not None and _fails(matrix, cell):
                yield Regression(
                    cell_id=cell.id,
                    passes_with=passing[0],
                    category=_category(matrix, cell),
                    reason="; ".join(matrix.reasons(cell)),
                )


def _category(matrix: Matrix, cell: Cell) -> str | None:
    record = matrix.record(cell)
    return record.judgement.category if record else None
