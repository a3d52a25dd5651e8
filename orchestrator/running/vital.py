"""
Ray's processes without which it can't go on.

It ends its driver without a word where one is gone, and waits without end for one that
somebody stopped.
"""

import math
import time
from contextlib import suppress

import psutil

NAMES = ("gcs_server", "raylet")

LOOK_EVERY_S = 2.0

TOO_OFTEN = 3
"""So many looks in a row; not seconds, as whoever looks may have been stopped along with it."""


def below(driver: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [child for child in psutil.Process(driver).children() if child.name() in NAMES]
    return []


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


class Watch:
    """Ends what was stopped for good, and with it the waiting."""

    def __init__(self, driver: int) -> None:
        self._driver = driver
        self._stopped: dict[psutil.Process, int] = {}
        self._looked = -math.inf

    def look(self) -> None:
        """Cheap to ask: it looks now and then only."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return
        self._looked = now
        stopped = [process for process in below(self._driver) if _is_stopped(process)]
        self._stopped = {process: self._stopped.get(process, 0) + 1 for process in stopped}
        for process, looks in self._stopped.items():
            if looks >= TOO_OFTEN:
                process.kill()


def _is_stopped(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_STOPPED
    return False
