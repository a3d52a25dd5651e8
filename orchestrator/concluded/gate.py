"""May this release ship?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from orchestrator.asked.config import Gate, Proof, Waiver
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.proof import Demonstration, Standing, is_witness, weigh
from orchestrator.taxonomy import PREDICTION_DIFFERS


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocker:
    cell_id: str
    verdict: Verdict
    category: str | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Waived:
    cell_id: str
    category: str
    waiver: Waiver


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    cells: int
    passed: int
    blockers: tuple[Blocker, ...]
    waived: tuple[Waived, ...]
    expired: tuple[Waiver, ...]
    """Waivers that would have fitted, but their day has passed."""

    confirmed: int = 0
    """How many predictions a real card has made true."""

    demonstration: Demonstration | None = None
    """What the run says about the suite's claim, if it has one."""

    @property
    def ships(self) -> bool:
        proven = self.demonstration is None or self.demonstration.standing is Standing.PROVEN
        return proven and not self.blockers and not self.regressions

    @property
    def regressions(self) -> int:
        return 0 if self.demonstration is None else len(self.demonstration.regressions)

    def sentence(self) -> str:
        """The whole answer in one sentence."""
        if self.ships:
            waived = f", {len(self.waived)} waived" if self.waived else ""
            confirmed = f", {self.confirmed} confirmed by a real card" if self.confirmed else ""
            return f"ships: {self.passed} of {self.cells} cells passed{waived}{confirmed}"
        mistaken = [each for each in self.blockers if each.category == PREDICTION_DIFFERS]
        others = [each for each in self.blockers if each not in mistaken]
        troubles = [f"{_listed(others)} of {self.cells} cells"] if others else []
        if mistaken:
            differ = "prediction differs" if len(mistaken) == 1 else "predictions differ"
            troubles.append(f"{len(mistaken)} {differ} from a real card")
        if self.demonstration is not None and self.demonstration.standing is not Standing.PROVEN:
            troubles.append(f"the claim is {self.demonstration.standing}")
        if self.regressions:
            troubles.append(f"{self.regressions} regressed with the fix")
        return f"blocked: {'; '.join(troubles)}"


def decide(matrix: Matrix, gate: Gate, *, today: date, proof: Proof | None = None) -> Decision:
    """
    Ship only if every cell passed or its very failure is waived.

    With a *proof* its claim has to be proven besides, and nothing may pass without the
    fix and fail with it. The other builds are witnesses: their cells may fail, but not be missing.
    """
    shipped = [cell for cell in matrix.cells if not is_witness(cell, proof)]
    blockers: list[Blocker] = []
    waived: list[Waived] = []
    expired: list[Waiver] = []
    for blocker in [*_not_passed(matrix, proof), *_mistaken(matrix)]:
        fitting = [*_fitting(gate, blocker)]
        valid = [waiver for waiver in fitting if not _expired(waiver, today)]
        expired += [waiver for waiver in fitting if waiver not in valid]
        if valid and blocker.category is not None:
            excused = Waived(cell_id=blocker.cell_id, category=blocker.category, waiver=valid[0])
            waived.append(excused)
        else:
            blockers.append(blocker)
    return Decision(
        cells=len(shipped),
        passed=sum(matrix.verdict(cell) is Verdict.PASSED for cell in shipped),
        blockers=tuple(blockers),
        waived=tuple(waived),
        expired=tuple(dict.fromkeys(expired)),
        confirmed=len(matrix.confirmed),
        demonstration=None if proof is None else weigh(matrix, proof),
    )


def _not_passed(matrix: Matrix, proof: Proof | None) -> Iterator[Blocker]:
    for cell in matrix.cells:
        verdict, record = matrix.verdict(cell), matrix.record(cell)
        if verdict is Verdict.PASSED or (verdict is Verdict.FAILED and is_witness(cell, proof)):
            continue
        yield Blocker(
            cell_id=cell.id,
            verdict=verdict,
            category=record.judgement.category if record else None,
            reason="; ".join(matrix.reasons(cell)),
        )


def _mistaken(matrix: Matrix) -> Iterator[Blocker]:
    """Cells whose emulated engine did something else than a real card, whatever their verdict."""
    for cell in matrix.cells:
        differing = [str(each) for each in matrix.disagreements if each.cell_id == cell.id]
        if differing:
            yield Blocker(
                cell_id=cell.id,
                verdict=matrix.verdict(cell),
                category=PREDICTION_DIFFERS,
                reason="; ".join(differing),
            )


def _fitting(gate: Gate, blocker: Blocker) -> Iterator[Waiver]:
    """What was not run has shown nothing that could be excused."""
    if blocker.verdict is not Verdict.NOT_RUN:
        for waiver in gate.waivers:
            if fnmatchcase(blocker.cell_id, waiver.cells) and waiver.category == blocker.category:
                yield waiver


def _expired(waiver: Waiver, today: date) -> bool:
    return waiver.expires is not None and waiver.expires < today


def _listed(blockers: Sequence[Blocker]) -> str:
    """`2 failed (silent_fallback, timeout) and 1 not run`."""
    parts: list[str] = []
    for verdict in (Verdict.FAILED, Verdict.NOT_RUN):
        alike = [blocker for blocker in blockers if blocker.verdict is verdict]
        if alike:
            kinds = ", ".join(dict.fromkeys(b.category for b in alike if b.category))
            parts.append(f"{len(alike)} {verdict}" + (f" ({kinds})" if kinds else ""))
    return " and ".join(parts)
