"""Processes by what their environment says: whoever started them, and whoever is their parent now."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def carrying(*pairs: str) -> list[int]:
    """Ids of living processes that have every `NAME=value` of these in their environment."""
    wanted = {pair.encode() for pair in pairs}
    every = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return [pid for pid in every if wanted <= _environment(pid)]


def holding(folder: Path) -> list[int]:
    """Ids of living processes that have a file in *folder* open: some wipe their environment."""
    inside = f"{folder}/"
    found = (path for path in Path("/proc").glob("[0-9]*/fd/*") if _target(path).startswith(inside))
    return sorted({int(path.parts[2]) for path in found})


def command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def send(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _environment(pid: int) -> set[bytes]:
    with suppress(OSError):
        return {*Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
    return set()


def _target(link: Path) -> str:
    with suppress(OSError):
        return str(link.readlink())
    return ""
