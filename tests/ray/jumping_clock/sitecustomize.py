"""For every Python of a run: the wall clock is an hour early and an hour late by turns."""

import time

_time, _time_ns = time.time, time.time_ns


def _jump_s() -> int:
    return 3600 if int(time.monotonic()) % 2 else -3600


time.time = lambda: _time() + _jump_s()
time.time_ns = lambda: _time_ns() + _jump_s() * 10**9
