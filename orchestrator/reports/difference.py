"""Two runs, or two builds of one, held together: as data, and in groups of cells alike."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.asked import cell_ids
from orchestrator.asked.policies import ChangeKind
from orchestrator.concluded import concerns, summary
from orchestrator.concluded.comparison import (
    Answer,
    CellChange,
    Comparison,
    RequestChange,
)
from orchestrator.concluded.facts import OUTCOME
from orchestrator.concluded.kinds import UNCOMPARED
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.requests import Request

ORDER = (
    ChangeKind.REGRESSED,
    ChangeKind.MISPREDICTED,
    ChangeKind.BROKEN_BEFORE,
    ChangeKind.INFRASTRUCTURE,
    ChangeKind.NO_VERDICT,
    ChangeKind.FLAKY,
    ChangeKind.NO_BASELINE,
    ChangeKind.DRIFT,
    ChangeKind.FIXED,
    ChangeKind.UNCHANGED,
)
"""What has to be looked at first comes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonRow:
    """What became of every cell of the candidate since the baseline."""

    base: str
    candidate: str
    sentence: str
    counts: dict[ChangeKind, int]
    """How many cells are of each kind."""

    request_counts: dict[ChangeKind, int]
    """The same of the single requests."""

    cells: tuple[CellChange, ...]
    gone: tuple[str, ...]
    """Cells of the baseline that nobody asks of the candidate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Cells of which the same is to be said."""

    cells: tuple[CellChange, ...]
    lines: tuple[str, ...]

    @property
    def kind(self) -> ChangeKind:
        return self.cells[0].kind

    @property
    def turn(self) -> str:
        return _turn(self.cells[0])


def row(comparison: Comparison, matrix: Matrix) -> ComparisonRow:
    """*matrix* is the candidate's."""
    found = [*concerns.found(matrix, comparison=comparison)]
    places = tuple(dict.fromkeys(map(concerns.place, matrix.cells)))
    requests = (each.kind for change in comparison.cells for each in change.requests.values())
    return ComparisonRow(
        base=comparison.base,
        candidate=comparison.candidate,
        sentence=summary.compared(comparison, found, places),
        counts=_counts(change.kind for change in comparison.cells),
        request_counts=_counts(requests),
        cells=comparison.cells,
        gone=comparison.gone,
    )


def groups(compared: ComparisonRow, *kinds: ChangeKind) -> Iterator[Group]:
    """
    Of *kinds*, or all but what is unchanged and has no speed, in the order in which it should
    be looked at.
    """
    wanted = {*kinds} or {*ChangeKind} - {ChangeKind.UNCHANGED}
    alike: dict[tuple[object, ...], list[CellChange]] = {}
    for change in compared.cells:
        if change.kind in wanted or (change.speed and not kinds):
            key = (change.kind, _verdicts(change), *_lines(change))
            alike.setdefault(key, []).append(change)
    for cells in sorted(alike.values(), key=lambda cells: ORDER.index(cells[0].kind)):
        yield Group(cells=tuple(cells), lines=tuple(_lines(cells[0])))


def subjects(cells: Iterable[CellChange]) -> list[str]:
    """`llama / auto: h100, mi300x`: the cards of one question together."""
    cards: dict[str, list[str]] = {}
    several = len({cell_ids.build(change.cell_id) for change in cells}) > 1
    for change in cells:
        card, model, backend, build = cell_ids.parts(change.cell_id)
        name = f"{model} / {backend}" + (f" / {build}" if several else "")
        cards.setdefault(name, []).append(card)
    return [f"{name}: {', '.join(found)}" for name, found in cards.items()]


def said(change: CellChange) -> Iterator[str]:
    """What became of its verdict, if anything, and what else there is to say."""
    if turn := _turn(change):
        yield turn
    yield from _lines(change)


def _turn(change: CellChange) -> str:
    """`passed → failed (timeout)`; nothing where the verdict is as before."""
    before, after = _verdicts(change)
    if not before:
        return after
    return "" if before == after else f"{before} → {after}"


def _counts(kinds: Iterable[ChangeKind]) -> dict[ChangeKind, int]:
    found = Counter(kinds)
    return {kind: found[kind] for kind in ORDER if found[kind]}


def _verdicts(change: CellChange) -> tuple[str, str]:
    return _said(change.before) if change.before else "", _said(change.after)


def _said(answer: Answer) -> str:
    return f"{answer.verdict} ({answer.category})" if answer.category else str(answer.verdict)


def _lines(change: CellChange) -> Iterator[str]:
    """Why, which requests, and what else was seen to differ."""
    by_speed = {each.kind for each in change.speed} if change.speed else set()
    if change.reason and change.kind not in by_speed:
        yield change.reason
    yield from (f"{each}: {each.kind}" for each in change.speed)
    told = {OUTCOME} if len({*_verdicts(change)}) > 1 else set()
    for field, each in change.requests.items():
        if _is_worth_a_line(each):
            name = " ".join(filter(None, (field, _asked(each))))
            told.add(name)
            yield f"{name}: {_became(each.before)} → {_became(each.after)} ({each.kind})"
    yield from (str(each) for each in change.differences if each.fact not in told)


def _is_worth_a_line(change: RequestChange) -> bool:
    """What vLLM chooses otherwise than before is among the differences."""
    if change.kind is ChangeKind.DRIFT:
        return _asked(change) is not None
    return change.kind not in {*UNCOMPARED, ChangeKind.UNCHANGED}


def _asked(change: RequestChange) -> str | None:
    return next((each.asked for each in (change.after, change.before) if each), None)


def _became(request: Request | None) -> str:
    return "not seen" if request is None else str(request.verdict)
