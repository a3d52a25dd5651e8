"""
Cells that their node should have ended long ago.

A node ends each attempt at its deadlines, as long as it can: a Ray worker that somebody
stopped, or that waits for a dead disk, can't.
"""

import math
import time
from collections.abc import Mapping, Sequence

from jobs.contract.asked import Deadlines
from jobs.contract.terms import Phase
from orchestrator.asked.cells import Cell
from orchestrator.running.underway import RunningCells

GRACE_S = 60.0
"""For what a node does before and after an attempt: to end a hanging host, to write stacks."""

LOOK_EVERY_S = 5.0


class Overdue:
    def __init__(self, cells: Sequence[Cell], running: RunningCells) -> None:
        self._limits_s = {cell.id: _limit_s(cell.deadlines) for cell in cells}
        self._running = running
        self._looked = -math.inf

    def among(self, submitted: Mapping[str, str]) -> tuple[str, ...]:
        """*submitted* as `Schedule` has it. Cheap to ask: it looks now and then only."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return ()
        self._looked = now
        ages = self._running.look(submitted)
        return tuple(
            cell_id for cell_id, cell in ages.items() if cell.age_s > self._limits_s[cell_id]
        )


def _limit_s(deadlines: Deadlines) -> float:
    # It may wait in vain for a host that another cell starts, and then start one itself.
    return 2 * deadlines.phases_s[Phase.IMPORT] + deadlines.attempt_s + GRACE_S
