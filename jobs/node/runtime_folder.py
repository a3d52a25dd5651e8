"""Where the hosts of one raylet keep sockets, locks and logs, and its cells temporary files."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from jobs import processes
from jobs.node.errors import NodeError

LONGEST_SOCKET_PATH = 107
"""Bytes that a Unix socket's address can hold."""

_LONGEST_NAME = "0123456789abcdef.1234567"


def owner() -> processes.Process:
    """The raylet, which is the parent of each of its workers."""
    return processes.identify(os.getppid())


def root() -> Path:
    """One for each space of process ids: containers may share the folder for temporary files."""
    ids = Path("/proc/self/ns/pid").stat().st_ino
    return Path(tempfile.gettempdir(), f"vllm-matrix-{os.getuid()}-{ids}")


def current() -> Path:
    """The owner's, private to this user. Those of owners that are gone are removed on the way."""
    folder = root() / f"{owner().pid}-{owner().started}"
    if len(os.fsencode(folder / _LONGEST_NAME)) > LONGEST_SOCKET_PATH:
        raise NodeError(f"{root()} is too long a path for sockets; set TMPDIR to a shorter one")
    _make_private(root())
    if not folder.exists():
        _sweep(root())
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise NodeError(f"{folder} is not a folder that only this user can enter; remove it")


def _sweep(folder: Path) -> None:
    for entry in folder.iterdir():
        pid, _, started = entry.name.partition("-")
        if pid.isdigit() and started.isdigit() and not _is_here(int(pid), int(started)):
            shutil.rmtree(entry, ignore_errors=True)


def _is_here(pid: int, started: int) -> bool:
    try:
        return processes.identify(pid) == processes.Process(pid=pid, started=started)
    except ProcessLookupError:
        return False
