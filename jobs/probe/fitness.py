"""Whether this process may be forked from, and for how long."""

import fnmatch
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DEVICES = ("/dev/nvidia*", "/dev/kfd", "/dev/dri/*")
"""What a process has open that has touched a GPU. A fork of such a one can't use it."""

CELLS = 200
"""The start of a host, divided by this, is no time at all; what leaks unseen ends with it."""

AGE_S = 2 * 3600.0
"""Files of a build, time zones, certificates: what was read long ago may be out of date."""

GROWN_MIB = 256
"""About half of what vLLM takes; a cell needs this much beside its own, and forks get slower."""


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Of this process at one time."""

    at: float
    memory_mib: int
    """Its own, be it shared with forks or not."""

    files: frozenset[int]
    threads: int


def obstacles(devices: Iterable[str] = DEVICES) -> tuple[str, ...]:
    """Why no fork of this process would be like a process of its own."""
    return (*_devices(tuple(devices)), *_cuda(), *_threads())


def state() -> State:
    return State(
        at=time.monotonic(),
        memory_mib=_anonymous_kib() >> 10,
        files=frozenset(descriptor for descriptor, _ in _open_files()),
        threads=len([*Path("/proc/self/task").iterdir()]),
    )


def wear(began: State, *, cells: int, expected_files: Iterable[int]) -> str | None:
    """Why a host should be replaced that *began* so and has served as many cells."""
    return next(_signs(began, state(), cells, frozenset(expected_files)), None)


def _signs(began: State, now: State, cells: int, expected_files: frozenset[int]) -> Iterator[str]:
    if files := now.files - began.files - expected_files:
        yield f"it has files open that it did not have: {sorted(files)}"
    if now.threads > began.threads:
        yield f"it has {now.threads} threads and began with {began.threads}"
    if (grown_mib := now.memory_mib - began.memory_mib) > GROWN_MIB:
        yield f"it has grown by {grown_mib} MiB"
    if cells >= CELLS:
        yield f"it has served {cells} cells"
    if (age_s := now.at - began.at) > AGE_S:
        yield f"it is {age_s:.0f} s old"


def _devices(patterns: tuple[str, ...]) -> Iterator[str]:
    for descriptor, path in _open_files():
        if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            yield f"{path} is open as {descriptor}"


def _cuda() -> Iterator[str]:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        yield "torch has initialised its device"


def _threads() -> Iterator[str]:
    if len(sys._current_frames()) > 1:  # noqa: SLF001 - it knows also what `threading` does not
        names = sorted(thread.name for thread in threading.enumerate())
        yield f"a second thread of Python runs: {', '.join(names)}"


def _open_files() -> Iterator[tuple[int, str]]:
    for link in [*Path("/proc/self/fd").iterdir()]:
        with suppress(FileNotFoundError):  # the one that listed them
            yield int(link.name), str(link.readlink())


def _anonymous_kib() -> int:
    status = Path("/proc/self/status").read_bytes()
    return int(status.partition(b"\nRssAnon:")[2].split()[0])
