"""
One attempt at a time in a folder of the run.

A driver that is lost together with its cluster's head ends nothing. The same command begins anew
with another driver, and asks for attempts that may be going on still.
"""

import errno
import fcntl
import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobs.contract.asked import Home
from jobs.node.errors import NodeError

FOLDER = ".occupied"
LOOK_S = 2.0
PATIENCE_S = 120.0
"""Disks that several machines share may tell late of what is gone."""

AFTERMATH_S = 1.0
"""A cell ends a moment after its worker."""

NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


@contextmanager
def held(home: Home, workdir: str) -> Iterator[None]:
    """Raises NodeError where an earlier attempt does not end in time."""
    file = Path(home.folder, FOLDER, hashlib.sha256(workdir.encode()).hexdigest()[:24])
    try:
        lock = _awaited(file, workdir)
    except OSError as error:
        raise NodeError(f"{error.filename or file}: {error.strerror}") from error
    over = threading.Event()
    threading.Thread(target=_watch, args=(home, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        with suppress(OSError):
            file.unlink()
        os.close(lock)


def has_another_driver(home: Home) -> bool:
    """Which leaves a witness of its own. A disk that is away for a while says nothing of that."""
    try:
        Path(home.folder, home.witness).stat()
    except FileNotFoundError:
        return Path(home.folder).is_dir()
    except OSError:
        return False
    return False


def _watch(home: Home, over: threading.Event) -> None:
    """A cell goes with its worker, for which nobody waits any more."""
    while not over.wait(LOOK_S):
        if has_another_driver(home):
            os.kill(os.getpid(), signal.SIGKILL)


def _awaited(file: Path, workdir: str) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + PATIENCE_S
    while (lock := _locked(file)) is None:
        if time.monotonic() > until:
            raise NodeError(
                f"{workdir}: an earlier attempt is still at work in there after {PATIENCE_S:.0f} s"
            )
        time.sleep(AFTERMATH_S)
    return lock


def _locked(file: Path) -> int | None:
    """None where another one has it, or had it until now."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            os.close(lock)
            raise
    if _is_of(lock, file):
        return lock
    os.close(lock)
    return None


def _is_of(lock: int, file: Path) -> bool:
    """Whoever had it removes it at the end."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), file.stat())
    return False
