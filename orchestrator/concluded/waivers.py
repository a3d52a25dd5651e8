"""Which waiver excuses what, and what is wrong with waivers. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import get_args

from orchestrator.asked.policies import ChangeKind, ConcernKind, OfACell, Waiver
from orchestrator.concluded.comparison import Comparison
from orchestrator.concluded.concerns import Concern
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.matrix import Matrix
from orchestrator.taxonomy import PREDICTION_DIFFERS, says_nothing_of_vllm, taxonomy

SHOWN = 3
"""Cells that a remark names."""

_OF_LUCK = (ConcernKind.FLAKY, ConcernKind.INFRASTRUCTURE, ConcernKind.NO_VERDICT)
_OF_COMPARISONS = (
    ConcernKind.REGRESSED,
    ConcernKind.BROKEN_BEFORE,
    ConcernKind.DRIFT,
    ConcernKind.NO_BASELINE,
    ConcernKind.GONE,
)


class Trouble(StrEnum):
    EXPIRED = "expired"
    UNUSED = "unused"
    """Nothing that it excuses was seen, nor anything that shows it to be needless."""

    TOO_BROAD = "too broad"
    """Some of the cells that it names pass."""

    OUTLIVED = "unexpectedly passing"
    """What it excuses is gone, and who takes it for known would not see it come back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    trouble: Trouble
    waiver: Waiver
    text: str
    cells: tuple[str, ...] = ()
    """Those that show it."""

    @property
    def blocks(self) -> bool:
        return self.trouble is Trouble.OUTLIVED


@dataclass(frozen=True, kw_only=True, slots=True)
class Waived:
    concern: Concern
    waiver: Waiver


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What became of the cells that are to be shipped."""

    verdicts: Mapping[str, Verdict]
    categories: Mapping[str, str | None]
    confirmed: frozenset[str]
    """Emulated cells of which a real card did the very same."""

    changes: Mapping[str, ChangeKind] | None
    """None without a baseline."""


def seen(matrix: Matrix, shipped: Iterable[str], comparison: Comparison | None) -> Seen:
    there = {cell.id: cell for cell in matrix.cells}
    records = {cell_id: matrix.record(there[cell_id]) for cell_id in shipped}
    return Seen(
        verdicts={cell_id: matrix.verdict(there[cell_id]) for cell_id in records},
        categories={
            cell_id: record.judgement.category if record else None
            for cell_id, record in records.items()
        },
        confirmed=frozenset(matrix.confirmed),
        changes={each.cell_id: each.kind for each in comparison.cells} if comparison else None,
    )


def excuse(concern: Concern, waivers: Iterable[Waiver], today: date) -> Waiver | None:
    valid = (waiver for waiver in waivers if not _expired(waiver, today))
    return next((waiver for waiver in valid if _fits(waiver, concern)), None)


def remarks(
    waivers: Iterable[Waiver], concerns: Sequence[Concern], seen: Seen, today: date
) -> Iterator[Remark]:
    """At most one on each."""
    for waiver in waivers:
        excused = [each.cell_id for each in concerns if _fits(waiver, each) and each.cell_id]
        if _expired(waiver, today):
            yield _expiry(waiver, excused)
        elif (remark := _remark(waiver, excused, seen)) is not None:
            yield remark


def _fits(waiver: Waiver, concern: Concern) -> bool:
    if concern.kind not in get_args(OfACell) or concern.cell_id is None:
        return False
    if waiver.category is not None and waiver.category != concern.category:
        return False
    if waiver.verdict not in {None, concern.kind, concern.verdict}:
        return False
    return fnmatchcase(concern.cell_id, waiver.cells)


def _expired(waiver: Waiver, today: date) -> bool:
    return waiver.expires is not None and waiver.expires < today


def _expiry(waiver: Waiver, cells: Sequence[str]) -> Remark:
    left = f"{_named(cells)} not excused any more" if cells else "nothing needs it: remove it"
    return Remark(
        trouble=Trouble.EXPIRED,
        waiver=waiver,
        text=f"ended on {waiver.expires}; {left}",
        cells=tuple(cells),
    )


def _remark(waiver: Waiver, excused: Collection[str], seen: Seen) -> Remark | None:
    named = [cell for cell in seen.verdicts if fnmatchcase(cell, waiver.cells)]
    others = [cell for cell in named if cell not in excused]
    needless = [cell for cell in others if _is_well(waiver, cell, seen)]
    if excused and needless:
        return Remark(
            trouble=Trouble.TOO_BROAD,
            waiver=waiver,
            text=f"names {len(named)} cells, and {_named(needless)} not in need of it",
            cells=tuple(needless),
        )
    if excused:
        return None
    if needless and not any(_says_nothing(cell, seen) for cell in others):
        return Remark(
            trouble=Trouble.OUTLIVED,
            waiver=waiver,
            text=f"{_named(needless)} well: remove it, or it hides the next failure",
            cells=tuple(needless),
        )
    return Remark(trouble=Trouble.UNUSED, waiver=waiver, text=_why_unused(waiver, named, seen))


def _is_well(waiver: Waiver, cell_id: str, seen: Seen) -> bool:
    """Whether the cell shows that it does not need the waiver; luck shows nothing."""
    if waiver.kind in _OF_LUCK or not _is_deterministic(waiver.category):
        return False
    if waiver.category == PREDICTION_DIFFERS or waiver.kind is ConcernKind.MISPREDICTED:
        return cell_id in seen.confirmed
    if waiver.kind in _OF_COMPARISONS:
        now = None if seen.changes is None else seen.changes.get(cell_id)
        return now in {ChangeKind.UNCHANGED, ChangeKind.FIXED}
    return seen.verdicts[cell_id] is Verdict.PASSED


def _is_deterministic(category: str | None) -> bool:
    return category is None or taxonomy().categories[category].deterministic


def _says_nothing(cell_id: str, seen: Seen) -> bool:
    verdict = seen.verdicts[cell_id]
    failed = verdict is Verdict.FAILED and says_nothing_of_vllm(seen.categories[cell_id])
    return failed or verdict is Verdict.NOT_RUN


def _why_unused(waiver: Waiver, named: Sequence[str], seen: Seen) -> str:
    if waiver.kind in _OF_COMPARISONS and seen.changes is None:
        return "tells of a change, and there is no baseline"
    if waiver.kind is ConcernKind.GONE:
        return "no such cell of the baseline is gone"
    if not named:
        return "matches no cell that is to be shipped"
    silent = [cell for cell in named if _says_nothing(cell, seen)]
    if silent:
        return f"cannot be judged: {_named(silent)} silent about vLLM"
    return f"was not needed by the {len(named)} cells that it names"


def _named(cells: Sequence[str]) -> str:
    """`a and b are`, `a, b, c and 7 more are`"""
    shown = [*cells[:SHOWN], *([f"{len(cells) - SHOWN} more"] if len(cells) > SHOWN else [])]
    if len(shown) == 1:
        return f"{shown[0]} is"
    return f"{', '.join(shown[:-1])} and {shown[-1]} are"
