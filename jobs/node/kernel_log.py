"""
Whether the kernel killed a process of a cell for want of memory.

Its own log names the process. Where that can't be read, or has other process ids than
this container, the counter of the node's control group must do.
"""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Self

LOG = Path("/dev/kmsg")
LONGEST_RECORD = 8192

FIRST_SPACE_OF_IDS = 0xEFFFFFFC
"""The inode of the process ids that the kernel's log speaks of."""

_KILLED = re.compile(r"(?i)out of memory.*: killed process (?P<pid>\d+)")


class KernelLog:
    """Its records from now on."""

    def __init__(self) -> None:
        self._log = _opened(LOG) if _has_the_kernels_ids() else None
        self._counter = counter(Path("/proc/self/cgroup").read_text())
        self._kills_before = kills(self._counter)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._log is not None:
            os.close(self._log)

    def out_of_memory(self, pids: Collection[int], *, was_killed: bool) -> str | None:
        """What shows it. *was_killed*: the leader was, and not by us."""
        if self._log is not None:
            return next(
                (text for pid, text in killed(_new_records(self._log)) if pid in pids), None
            )
        more = kills(self._counter) - self._kills_before
        if was_killed and more > 0:
            return f"the kernel killed for want of memory: {self._counter} counts {more} more"
        return None


def killed(records: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Of records of the kernel's log, those that tell of it, by process id."""
    for record in records:
        # Facts about the record stand before the semicolon, and fields on lines behind it.
        text = record.partition(";")[2].partition("\n")[0]
        if found := _KILLED.search(text):
            yield int(found["pid"]), text


def counter(groups: str, root: Path = Path("/sys/fs/cgroup")) -> Path | None:
    """The file that counts such kills in one of a process's *groups*, of either version."""
    for line in groups.splitlines():
        _, controller, group = line.split(":", 2)
        folder = root / controller / group.lstrip("/")
        file = folder / ("memory.oom_control" if controller else "memory.events")
        if controller in ("memory", "") and file.exists():
            return file
    return None


def kills(file: Path | None) -> int:
    lines = [] if file is None else file.read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _has_the_kernels_ids() -> bool:
    return Path("/proc/self/ns/pid").stat().st_ino == FIRST_SPACE_OF_IDS


def _opened(log: Path) -> int | None:
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    os.lseek(descriptor, 0, os.SEEK_END)
    return descriptor


def _new_records(log: int) -> Iterator[str]:
    while True:
        try:
            yield os.read(log, LONGEST_RECORD).decode(errors="replace")
        except BlockingIOError:
            return
        except BrokenPipeError:  # the oldest of them are overwritten by now
            continue
