"""Which processes a cell had, and the most memory of their own that they had together."""

import time

from jobs import memory, processes

FIRST_AFTER_S, LONGEST_INTERVAL_S = 0.1, 0.5
"""A small engine is through in a quarter of a second; a large one takes its time to grow."""

SHARE = 0.02
"""Of the time goes into looking, at most: a node may have thousands of processes to look at."""


class Footprint:
    def __init__(self, tree: processes.Tree) -> None:
        self.seen: set[processes.Process] = {tree.leader} if tree.leader else set()
        self.most_mib: int | None = None
        self._tree = tree
        self._interval_s = FIRST_AFTER_S
        self._next_at = time.monotonic() + FIRST_AFTER_S

    def due_in_s(self) -> float:
        return max(0.0, self._next_at - time.monotonic())

    def look(self) -> None:
        began = time.monotonic()
        here = processes.alive(self._tree)
        self.seen |= here
        mib = sum(memory.own_mib(process.pid) for process in here)
        self.most_mib = max(mib, self.most_mib or 0)
        ended = time.monotonic()
        self._next_at = ended + max(self._interval_s, (ended - began) / SHARE)
        self._interval_s = min(2 * self._interval_s, LONGEST_INTERVAL_S)
