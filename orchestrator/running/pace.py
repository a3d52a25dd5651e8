"""
How fast nodes end cells, and so how many to give them ahead.

A cell of nothing ends sooner than the next one could reach its node, which would wait for it.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

AHEAD_S = 0.5


class Pace:
    def __init__(self) -> None:
        self._ends: defaultdict[str, deque[float]] = defaultdict(deque)

    def note(self, nodes: Iterable[str]) -> None:
        """One for each cell that just ended there."""
        now = time.monotonic()
        for node_id in nodes:
            self._ends[node_id].append(now)

    def recent(self) -> Iterator[tuple[str, int]]:
        """Nodes that ever ended a cell, with how many they ended in the last moment."""
        since = time.monotonic() - AHEAD_S
        for node_id, ends in self._ends.items():
            while ends and ends[0] < since:
                ends.popleft()
            yield node_id, len(ends)
