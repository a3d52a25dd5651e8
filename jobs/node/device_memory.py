"""
Whether the memory of a cell's devices is back, before the next cell starts on them.

A driver frees it when the last process is gone, and that takes a while.
"""

import time
from collections.abc import Callable, Mapping

from jobs.node.vendors import VENDORS

PATIENCE_S = 20.0
POLL_S = 0.1

LEEWAY_MIB = 64
"""Drivers keep books of their own; the smallest engine takes several times as much."""

Used = Mapping[str, int]
"""MiB in use, by device."""


def used() -> Used:
    """On the devices that a process with this environment can see."""
    return {
        f"{name} {device}": mib
        for name, vendor in VENDORS.items()
        for device, mib in vendor.used_mib().items()
    }


def still_held(before: Used, look: Callable[[], Used] = used) -> tuple[str, ...]:
    """What does not come back in time, in words."""
    until = time.monotonic() + PATIENCE_S
    while (grown := _grown(before, look())) and time.monotonic() < until:
        time.sleep(POLL_S)
    return tuple(
        f"{mib} MiB of device {device} are still in use {PATIENCE_S:.0f} s after the last process"
        for device, mib in grown.items()
    )


def _grown(before: Used, now: Used) -> dict[str, int]:
    more = {device: mib - before[device] for device, mib in now.items() if device in before}
    return {device: mib for device, mib in more.items() if mib > LEEWAY_MIB}
