"""Which processes a cell had, and the most memory of their own that they had together."""

import time
from pathlib import Path

from jobs import processes

INTERVAL_S = 0.5

SHARE = 0.02
"""Of the time at most goes into looking: a node may have thousands of processes to look at."""


class Footprint:
    def __init__(self, tree: processes.Tree) -> None:
        self.seen: set[processes.Process] = {tree.leader} if tree.leader else set()
        self.most_mib: int | None = None
        self._tree = tree
        self._next_at = 0.0

    def look(self) -> None:
        """If it is time to."""
        began = time.monotonic()
        if began < self._next_at:
            return
        here = processes.alive(self._tree)
        self.seen |= here
        mib = sum(own_bytes(process.pid) for process in here) >> 20
        self.most_mib = max(mib, self.most_mib or 0)
        ended = time.monotonic()
        self._next_at = ended + max(INTERVAL_S, (ended - began) / SHARE)


def own_bytes(pid: int) -> int:
    """
    What would be free if the process went: neither what it still shares with the host that
    it was forked from, nor libraries that others use. 0 if there is no such process.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return 0
    sizes = (line.split() for line in rollup.splitlines() if line.startswith(b"Private_"))
    return sum(int(fields[1]) for fields in sizes) << 10
