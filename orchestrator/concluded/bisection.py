"""Which version of a row changed a cell's outcome, from as few answers as will do. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.kinds import Known, what_differs


class Side(StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    """It says nothing: it can't be built, or does something third."""


Sides = Mapping[int, Side]
"""Of the versions that were tried, by their place in the row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """What tells good from bad."""

    good: Known
    bad: Known
    until: str | None = None
    """The category of failure that makes one bad; None: whatever tells the two ends apart."""

    def side(self, version: Known) -> tuple[Side, str]:
        """With the reason, for people."""
        if version.says_nothing:
            return Side.SKIPPED, f"says nothing: {'; '.join(version.reasons)}"
        if self.until is None and self.bad.verdict is Verdict.PASSED:
            return self._by_facts(version)
        if version.verdict is Verdict.PASSED:
            return Side.GOOD, "passed"
        why = f"failed ({version.category}): {'; '.join(version.reasons)}"
        if version.category == (self.until or self.bad.category):
            return Side.BAD, why
        if (version.verdict, version.category) == (self.good.verdict, self.good.category):
            return Side.GOOD, why
        return Side.SKIPPED, f"{why}, which is another failure"

    def _by_facts(self, version: Known) -> tuple[Side, str]:
        if version.verdict is not Verdict.PASSED:
            return Side.SKIPPED, f"failed ({version.category}): {'; '.join(version.reasons)}"
        concerned = {each.fact for each in what_differs(self.good, self.bad)}
        apart = [str(d) for d in what_differs(self.good, version) if d.fact in concerned]
        return (Side.BAD, "; ".join(apart)) if apart else (Side.GOOD, "as the good end")


def objections(criterion: Criterion) -> Iterator[str]:
    """Why these two ends are none to search between."""
    good, bad, until = criterion.good, criterion.bad, criterion.until
    for name, end in (("GOOD", good), ("BAD", bad)):
        if end.says_nothing:
            yield f"{name} says nothing about vLLM: {'; '.join(end.reasons)}"
    if good.says_nothing or bad.says_nothing:
        return
    if until is not None:
        if good.verdict is Verdict.FAILED and good.category == until:
            yield f"GOOD fails with {until} as well"
        if bad.verdict is Verdict.PASSED or bad.category != until:
            yield f"BAD does not fail with {until}: {_answer(bad)}"
    elif good.verdict is not Verdict.PASSED:
        swap = "; GOOD and BAD are the other way round" if bad.verdict is Verdict.PASSED else ""
        yield f"GOOD is not good: {_answer(good)}{swap}"
        if not swap:
            yield "to find what brought one of several failures, add --until CATEGORY"
    elif bad.verdict is Verdict.PASSED and not what_differs(good, bad):
        yield "both ends pass, with the same backends, layout and runner"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    before: int
    """The last place that is known to be as the start of the row."""

    after: int
    """The first that is known to be as its end: the change is here, or in between."""

    turns: tuple[tuple[int, int], ...]
    """Other places between which it changed too, as far as is known."""

    @property
    def suspects(self) -> range:
        return range(self.before + 1, self.after + 1)


def search(count: int, sides: Sides) -> int | Finding:
    """
    The place to try next, or what was found. The first and the last of *count* are known, and
    differ.
    """
    before, after = 0, count - 1
    while True:
        inside = range(before + 1, after)
        middle = (before + after) / 2
        known = [at for at in inside if sides.get(at) in {Side.GOOD, Side.BAD}]
        if not known:
            break
        # What is known already costs nothing.
        at = min(known, key=lambda place: abs(place - middle))
        before, after = (at, after) if sides[at] is sides[0] else (before, at)
    untried = [at for at in inside if at not in sides]
    if untried:
        return min(untried, key=lambda place: abs(place - middle))
    return Finding(before=before, after=after, turns=tuple(_turns(sides, before)))


def tries_at_most(count: int) -> int:
    """Beside the two ends, where none says nothing."""
    return max(count - 2, 0).bit_length()


def _turns(sides: Sides, found: int) -> Iterator[tuple[int, int]]:
    telling = sorted(at for at, side in sides.items() if side is not Side.SKIPPED)
    for one, next_ in pairwise(telling):
        if sides[one] is not sides[next_] and one != found:
            yield one, next_


def _answer(known: Known) -> str:
    kind = f" ({known.category})" if known.category else ""
    why = f": {'; '.join(known.reasons)}" if known.reasons else ""
    return f"it {known.verdict}{kind}{why}"
