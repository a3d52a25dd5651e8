"""
Files in /dev/shm that engines leave behind when they are killed, and their removal.

Whether anybody still uses one is asked of the kernel: it grants a lease for writing only
to the sole one who has the file open or mapped, be that in another container.
"""

import fcntl
import os
import re
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobs import processes

FOLDER = Path("/dev/shm")  # noqa: S108 - the very place, by any standard of Linux

PATIENCE_S = 2.0
POLL_S = 0.01

KNOWN = re.compile(
    r"""
      psm_\w+                             # multiprocessing.shared_memory
    | sem\.mp-[\w-]+                      # multiprocessing's locks
    | torch_\d+_\d+_\d+                  # torch
    | nccl-\w+                            # NCCL and RCCL
    | vllm_\S+                            # vLLM: multi-modal inputs, offloaded caches
    | VLLM_OBJECT_STORAGE_SHM_BUFFER\S*
    | \S+-cpushm\S*                       # vLLM's reduction among CPU workers
    | __KMP_REGISTERED_LIB_(?P<pid>\d+)(_\d+)?  # OpenMP of LLVM and Intel; held by nobody
    """,
    re.VERBOSE,
)
"""Names of files that nobody wants back once those who shared them are gone."""


def present() -> frozenset[int]:
    """What is there now, as inode numbers: a clock may jump, and a name be given again."""
    return frozenset(found.st_ino for _, found in _known())


def sweep(since: frozenset[int]) -> tuple[str, ...]:
    """Remove what was not *present* then and is of no use to anybody now. Returns the names."""
    with _alone():
        return tuple(
            path.name
            for path, found in _known()
            if found.st_ino not in since and not _is_its_maker_here(path) and _removed(path)
        )


@contextmanager
def _alone() -> Iterator[None]:
    """Two that look at a file at once would take each other for its users."""
    until = time.monotonic() + PATIENCE_S
    folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while not _locked(folder) and time.monotonic() < until:
            time.sleep(POLL_S)
        yield
    finally:
        os.close(folder)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _known() -> Iterator[tuple[Path, os.stat_result]]:
    for path in FOLDER.iterdir():
        if KNOWN.fullmatch(path.name):
            with suppress(FileNotFoundError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
                    yield path, found


def _is_its_maker_here(path: Path) -> bool:
    named = KNOWN.fullmatch(path.name)
    maker = None if named is None else named["pid"]
    return maker is not None and processes.is_running(int(maker))


def _removed(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Whoever opens the file meanwhile waits, and the holder of a lease is told by a
        # signal, which must not be the one that ends it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        path.unlink()
    except OSError:  # in use, or gone
        return False
    finally:
        os.close(descriptor)
    return True
