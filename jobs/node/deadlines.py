"""
Which deadline of an attempt has passed.

All times are of the monotonic clock, and as the node saw things: a probe's own clock
may be anything.
"""

import math

from jobs.contract.asked import Deadlines
from jobs.contract.attempts import Timeout
from jobs.contract.terms import Phase


class Watch:
    def __init__(self, deadlines: Deadlines, now: float) -> None:
        self.phase = Phase.PREPARE
        self._deadlines = deadlines
        self._began = self._entered = self._heard = now

    def see(self, phase: Phase, now: float) -> None:
        if phase is not self.phase:
            self.phase = phase
            self._entered = self._heard = now

    def hear(self, at: float) -> None:
        """There was a sign of life."""
        self._heard = max(self._heard, at)

    def missed(self, now: float) -> Timeout | None:
        return next((which for which, end in self._ends().items() if now >= end), None)

    def left_s(self, now: float) -> float:
        """Until the next one passes, if nothing changes."""
        return max(0.0, min(self._ends().values()) - now)

    def _ends(self) -> dict[Timeout, float]:
        asked = self._deadlines
        return {
            Timeout.ATTEMPT: self._began + asked.attempt_s,
            Timeout.PHASE: self._entered + asked.phases_s.get(self.phase, math.inf),
            Timeout.QUIET: self._heard + asked.quiet_s,
        }
