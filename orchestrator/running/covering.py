"""
In which order cells tell most, soonest. Pure.

What goes wrong is nearly always one value of an axis, or two that don't go together: a backend
on a card, a model in a build. So cells go first that show pairs of values not shown before.
"""

import zlib
from collections.abc import Iterable, Sequence

from orchestrator.asked import cell_ids

Pairs = tuple[tuple[str, str, str], ...]
"""Which two axes, and a value of each."""


def ordered(cell_ids: Sequence[str], known: Iterable[str] = ()) -> list[str]:
    """All of them. What pairs the cells *known* show need not be shown again."""
    shown = {pair for cell_id in known for pair in _pairs(cell_id)}
    pairs = {cell_id: _pairs(cell_id) for cell_id in cell_ids}
    most = max(map(len, pairs.values()), default=0)
    # What a cell adds only gets less, so it is counted again only when its turn comes.
    adding: list[list[str]] = [[] for _ in range(most)] + [[*pairs]]
    first: list[str] = []
    for promised in range(most, 0, -1):
        for cell_id in adding[promised]:
            adds = most - len(shown.intersection(pairs[cell_id]))
            if adds == promised:
                shown.update(pairs[cell_id])
                first.append(cell_id)
            else:
                adding[adds].append(cell_id)
    return [*first, *sorted(adding[0], key=_mixed)]


def coverage(cell_ids: Iterable[str], of: Iterable[str]) -> float:
    """The part of all pairs of values in the cells *of* that *cell_ids* show."""
    there = {pair for cell_id in of for pair in _pairs(cell_id)}
    shown = {pair for cell_id in cell_ids for pair in _pairs(cell_id)}
    return len(shown & there) / len(there) if there else 1.0


def _pairs(cell_id: str) -> Pairs:
    hardware, model, backend, build = cell_ids.parts(cell_id)
    return (
        ("hardware model", hardware, model),
        ("hardware backend", hardware, backend),
        ("hardware build", hardware, build),
        ("model backend", model, backend),
        ("model build", model, build),
        ("backend build", backend, build),
    )


def _mixed(cell_id: str) -> int:
    """An order that favours no value, and is the same tomorrow."""
    return zlib.crc32(cell_id.encode())
