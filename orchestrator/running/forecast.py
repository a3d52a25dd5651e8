"""How long what is left will take: the schedule played through, at the pace of this run. Pure."""

import heapq
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from jobs.contract.terms import EngineMode

HOST_BOOT_S = {EngineMode.REAL: 10.0, EngineMode.EMULATED: 22.0}
"""Measured on an idle core, by engine mode: for until a host of this run has shown better."""

FIRM_S = 3.0
"""So many seconds of cells have to end before their pace counts as much as that of earlier runs."""

AT_LEAST = 0.1
"""What is late has at least this part of its time still to go."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What one cell costs."""

    seconds: float
    """Its own, once it has a process, as far as earlier runs tell."""

    host: Hashable = None
    """The host that it shares with others, which has to start once. None: it shares none."""

    boot_s: float = 0.0
    """What that host probably needs to start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A cell that a node has begun with."""

    age_s: float
    forked_after_s: float | None
    """When it got its process; None: its host is still starting."""


class Forecast:
    def __init__(self, work: Mapping[str, Work], *, at_once: int) -> None:
        """*work* is by cell id, in the order in which cells start."""
        self._waiting = dict(work)
        self._work = work
        self._at_once = at_once
        self._up: set[Hashable] = set()
        self._boot_s: float | None = None
        self._expected_s = self._took_s = FIRM_S

    def ended(self, cell_id: str, seconds: float | None, *, age_s: float | None = None) -> None:
        """*seconds* of its own, if there was an attempt; *age_s* since a node began, if seen."""
        work = self._waiting.pop(cell_id, None)
        if work is None or seconds is None:
            return
        self._expected_s += work.seconds
        self._took_s += seconds
        self._came_up(work.host, None if age_s is None else max(0.0, age_s - seconds))

    def left_s(self, running: Mapping[str, Running]) -> float:
        for cell_id, now in running.items():
            if now.forked_after_s is not None:
                self._came_up(self._work[cell_id].host, now.forked_after_s)
        pace = self._took_s / self._expected_s
        up: dict[Hashable, float] = dict.fromkeys(self._up, 0.0)
        slots = [
            self._end_of_running(self._work[cell_id], now, up, pace)
            for cell_id, now in running.items()
        ]
        slots += [0.0] * max(0, self._at_once - len(slots))
        heapq.heapify(slots)
        for cell_id, work in self._waiting.items():
            if cell_id not in running:
                begins = heapq.heappop(slots)
                heapq.heappush(slots, self._ready(work, begins, up) + work.seconds * pace)
        return max(slots)

    def _came_up(self, host: Hashable, after_s: float | None) -> None:
        """The first cell of a host has seen all of its start."""
        if host is None or host in self._up:
            return
        self._up.add(host)
        if after_s is not None:
            # The latest counts as much as all before it: others may load the machine by now.
            self._boot_s = after_s if self._boot_s is None else (self._boot_s + after_s) / 2

    def _end_of_running(
        self, work: Work, now: Running, up: dict[Hashable, float], pace: float
    ) -> float:
        if now.forked_after_s is None:
            if work.host is not None and work.host not in up:
                boot_s = self._boot_of(work)
                up[work.host] = max(boot_s - now.age_s, AT_LEAST * boot_s)
            return up.get(work.host, 0.0) + work.seconds * pace
        of_its_own = now.age_s - now.forked_after_s
        return max(work.seconds * pace - of_its_own, AT_LEAST * work.seconds)

    def _ready(self, work: Work, begins: float, up: dict[Hashable, float]) -> float:
        if work.host is None:
            return begins
        return max(begins, up.setdefault(work.host, begins + self._boot_of(work)))

    def _boot_of(self, work: Work) -> float:
        return work.boot_s if self._boot_s is None else self._boot_s
