"""
In which order cells tell most, soonest. Pure.

What goes wrong is nearly always one value of an axis, or two that don't go together: a backend
on a card, a model in a build. So cells go first that show pairs of values not shown before.
"""

import itertools
import zlib
from collections.abc import Iterable, Sequence

Pairs = tuple[int, ...]
"""Each number stands for a value of one axis together with one of another."""


def ordered(cell_ids: Sequence[str], known: Iterable[str] = ()) -> list[str]:
    """All of them. What pairs the cells *known* show need not be shown again."""
    numbers: dict[tuple[int, str, str], int] = {}
    shown = {number for cell_id in known for number in _pairs(cell_id, numbers)}
    pairs = {cell_id: _pairs(cell_id, numbers) for cell_id in cell_ids}
    # What a cell adds only gets less, so it is counted again only when its turn comes.
    most = max(map(len, pairs.values()), default=0)
    adding: list[list[str]] = [[] for _ in range(most)] + [[*cell_ids]]
    first: list[str] = []
    for promised in range(most, 0, -1):
        for cell_id in adding[promised]:
            adds = sum(number not in shown for number in pairs[cell_id])
            if adds == promised:
                shown.update(pairs[cell_id])
                first.append(cell_id)
            else:
                adding[adds].append(cell_id)
    return [*first, *sorted(adding[0], key=_mixed)]


def coverage(cell_ids: Iterable[str], of: Iterable[str]) -> float:
    """The part of all pairs of values in the cells *of* that *cell_ids* show."""
    numbers: dict[tuple[int, str, str], int] = {}
    there = {number for cell_id in of for number in _pairs(cell_id, numbers)}
    shown = {number for cell_id in cell_ids for number in _pairs(cell_id, numbers)}
    return len(shown & there) / len(there) if there else 1.0


def _pairs(cell_id: str, numbers: dict[tuple[int, str, str], int]) -> Pairs:
    values = cell_id.split("/")
    return tuple(
        numbers.setdefault((place, one, other), len(numbers))
        for place, (one, other) in enumerate(itertools.combinations(values, 2))
    )


def _mixed(cell_id: str) -> int:
    """An order that favours no value, and is the same tomorrow."""
    return zlib.crc32(cell_id.encode())
