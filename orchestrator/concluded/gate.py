"""May this release ship?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Proof
from orchestrator.asked.policies import ChangeKind, ConcernKind, Gate
from orchestrator.concluded import concerns, limits, summary, waivers
from orchestrator.concluded.comparison import Comparison
from orchestrator.concluded.concerns import Concern
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.kinds import known
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.proof import Demonstration, is_witness, weigh
from orchestrator.concluded.waivers import Remark, Seen, Waived


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    policy: str
    cells: int
    """That are to be shipped."""

    passed: int
    blockers: tuple[Concern, ...]
    """The gravest first."""

    waived: tuple[Waived, ...]
    tolerated: tuple[Concern, ...]
    """What the policy lets pass."""

    remarks: tuple[Remark, ...] = ()
    """What is wrong with waivers."""

    places: tuple[str, ...] = ()
    """Kinds of card that the run is about."""

    confirmed: int = 0
    """How many predictions a real card has made true."""

    comparison: Comparison | None = None
    """With the baseline, if there is one."""

    demonstration: Demonstration | None = None
    """What the run says about the suite's claim, if it has one."""

    @property
    def ships(self) -> bool:
        return not self.blockers

    def sentence(self) -> str:
        """The whole answer in one sentence."""
        if not self.ships:
            return summary.blocked(self.blockers, cells=self.cells, places=self.places)
        return summary.ships(
            self.tolerated,
            cells=self.cells,
            passed=self.passed,
            waived=len(self.waived),
            fixed=len(self.comparison.of(ChangeKind.FIXED)) if self.comparison else 0,
            confirmed=self.confirmed,
        )


def decide(  # noqa: PLR0913  # a decision is made of these
    matrix: Matrix,
    gate: Gate,
    *,
    today: date,
    proof: Proof | None = None,
    comparison: Comparison | None = None,
    unusable: str = "",
) -> Decision:
    """
    Ship only if every cell passed, or what is wrong with it is waived or tolerated.

    With a *proof* its claim has to be proven besides, and nothing may pass without the fix and
    fail with it. The other builds are witnesses: their cells may fail, but not be missing.
    *unusable* is why there is no comparison although the gate wants one.
    """
    demonstration = None if proof is None else weigh(matrix, proof)
    found = [
        *concerns.found(matrix, comparison=comparison, proof=proof, demonstration=demonstration),
        *([Concern(kind=ConcernKind.BASELINE, reason=unusable)] if unusable else []),
    ]
    weighed = _weigh(found, gate, matrix.cells, today)
    shipped = [cell for cell in matrix.cells if not is_witness(cell, proof)]
    remarks = [*waivers.remarks(gate.waivers, found, _seen(matrix, shipped, comparison), today)]
    blockers = [
        *weighed.blocking,
        *_shortfalls(gate, matrix, shipped, weighed.waived),
        *_outlived(remarks),
    ]
    return Decision(
        policy=gate.name,
        cells=len(shipped),
        passed=sum(matrix.verdict(cell) is Verdict.PASSED for cell in shipped),
        blockers=tuple(sorted(blockers, key=_gravity)),
        waived=weighed.waived,
        tolerated=tuple(sorted(weighed.tolerated, key=_gravity)),
        remarks=tuple(remarks),
        places=tuple(dict.fromkeys(map(concerns.place, matrix.cells))),
        confirmed=len(matrix.confirmed),
        comparison=comparison,
        demonstration=demonstration,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Weighed:
    blocking: tuple[Concern, ...]
    waived: tuple[Waived, ...]
    tolerated: tuple[Concern, ...]


def _weigh(found: Sequence[Concern], gate: Gate, cells: Sequence[Cell], today: date) -> _Weighed:
    missing = {each.cell_id for each in found if each.kind is ConcernKind.NOT_RUN and each.cell_id}
    bearable = limits.bearable(gate, [cell.id for cell in cells], missing)
    blocking: list[Concern] = []
    waived: list[Waived] = []
    tolerated: list[Concern] = []
    for concern in found:
        fine = concern.kind is ConcernKind.NOT_RUN and concern.cell_id in bearable
        if (waiver := waivers.excuse(concern, gate.waivers, today)) is not None:
            waived.append(Waived(concern=concern, waiver=waiver))
        elif fine or concern.kind in gate.tolerates:
            tolerated.append(concern)
        else:
            blocking.append(concern)
    return _Weighed(blocking=tuple(blocking), waived=tuple(waived), tolerated=tuple(tolerated))


def _seen(matrix: Matrix, shipped: Sequence[Cell], comparison: Comparison | None) -> Seen:
    return waivers.seen(matrix, [cell.id for cell in shipped], comparison)


def _shortfalls(
    gate: Gate, matrix: Matrix, shipped: Sequence[Cell], waived: Sequence[Waived]
) -> Iterator[Concern]:
    telling = {cell.id for cell in shipped if not known(matrix, cell).says_nothing}
    telling |= {each.concern.cell_id for each in waived if each.concern.cell_id}
    return limits.shortfalls(gate, [cell.id for cell in shipped], telling)


def _outlived(remarks: Sequence[Remark]) -> Iterator[Concern]:
    for remark in remarks:
        if remark.blocks:
            yield Concern(kind=ConcernKind.WAIVER, reason=f"{remark.waiver.cells}: {remark.text}")


def _gravity(concern: Concern) -> int:
    return [*ConcernKind].index(concern.kind)
