"""How much may be missing: of the run, and of single cards. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from orchestrator.asked import cell_ids
from orchestrator.asked.config import EMULATED
from orchestrator.asked.policies import ConcernKind, Gate, Limits
from orchestrator.concluded.concerns import Concern

THE_RUN = "the run"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    """Cells that are counted together."""

    name: str
    limit: float | None
    cells: tuple[str, ...]


def shortfalls(gate: Gate, cells: Sequence[str], tell: Collection[str]) -> Iterator[Concern]:
    """*tell* are those of *cells* that say something about vLLM, or are excused."""
    for group in _groups(gate, cells, lambda limits: limits.min_coverage, gate.min_coverage):
        telling = sum(cell in tell for cell in group.cells)
        needed = group.limit or 0.0
        if telling < needed * len(group.cells):
            yield Concern(
                kind=ConcernKind.COVERAGE,
                reason=f"{telling} of {len(group.cells)} cells of {group.name} say something "
                f"about vLLM, and {needed * 100:.3g} % have to",
            )


def bearable(gate: Gate, cells: Sequence[str], missing: Collection[str]) -> set[str]:
    """Those of *missing*, which were not run, that the gate can do without."""
    groups = _groups(gate, cells, lambda limits: limits.max_not_run, gate.max_not_run)
    fine: set[str] = set()
    for group in groups:
        lacking = {cell for cell in group.cells if cell in missing}
        if group.limit is None or len(lacking) <= group.limit:
            fine |= lacking
    return fine


def _groups(
    gate: Gate,
    cells: Iterable[str],
    of_card: Callable[[Limits], float | None],
    of_run: float | None,
) -> list[_Group]:
    """A card with a limit of its own is counted alone, and all others together."""
    limits: dict[str, float | None] = {THE_RUN: of_run}
    grouped: dict[str, list[str]] = {}
    for cell in cells:
        card = cell_ids.card(cell)
        own = _own(gate.per_card, card, of_card)
        if own is not None:
            limits[card] = own
        grouped.setdefault(card if own is not None else THE_RUN, []).append(cell)
    return [
        _Group(name=name, limit=limits[name], cells=tuple(found)) for name, found in grouped.items()
    ]


def _own(
    per_card: Mapping[str, Limits], card: str, of_card: Callable[[Limits], float | None]
) -> float | None:
    """Of all globs that match the card, emulated or not, the last with such a limit counts."""
    names = {card, card.removesuffix(EMULATED)}
    matching = [
        of_card(limits)
        for glob, limits in per_card.items()
        if any(fnmatchcase(name, glob) for name in names)
    ]
    return next((limit for limit in reversed(matching) if limit is not None), None)
