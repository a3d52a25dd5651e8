"""
Folders that are made once and then shared by every run on the node.

A folder counts as finished when its manifest is there, which is written last. Whoever
makes one holds its lock; a run that is killed while making leaves a folder without a
manifest, which the next one wipes.
"""

import fcntl
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from jobs.node.builds import mounts
from jobs.node.builds.errors import BuildNodeError

MANIFEST = "manifest.json"
WAITING = "waiting for another run that makes it"
WAITING_IS_SAID_EVERY_S = 30.0
POLL_S = 0.2
T = TypeVar("T")


def ready(
    folder: Path,
    *,
    look: Callable[[dict[str, Any]], T],
    make: Callable[[int], dict[str, Any]],
    say: Callable[[str], None],
) -> tuple[T, bool]:
    """
    What *look* finds in the folder, and whether it was there before. *look* takes the
    manifest and raises `Stale` when the folder is not what the manifest says; *make*
    takes the descriptor of the lock, for processes that write into the folder.
    """
    # First without the lock: a cache that can only be read is as good once it is filled.
    there = found(folder, look=look, say=say)
    if there is not None:
        return there, True
    with _locked(folder, say) as lock:
        there = found(folder, look=look, say=say)
        if there is not None:
            return there, True
        _make(folder, make, lock)
        there = found(folder, look=look, say=say)
    if there is None:
        raise BuildNodeError(f"{folder} was made, and is broken already")
    return there, False


class Stale(Exception):  # noqa: N818  it is an answer, not an error
    """The folder is not what its manifest says; the argument tells how."""


def found(
    folder: Path, *, look: Callable[[dict[str, Any]], T], say: Callable[[str], None]
) -> T | None:
    """As `ready`, but nothing is made."""
    try:
        return look(json.loads((folder / MANIFEST).read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, LookupError):
        say("the cached one has a manifest that can't be read; making it again")
    except Stale as stale:
        say(f"the cached one {stale}; making it again")
    return None


def _make(folder: Path, make: Callable[[int], dict[str, Any]], lock: int) -> None:
    wipe(folder)
    folder.mkdir()
    try:
        manifest = make(lock)
        _seal(folder, manifest)
    except BaseException:
        # The half-made folder gives its space back; that it is in the way or not is no matter.
        shutil.rmtree(folder, ignore_errors=True)
        raise


def wipe(folder: Path) -> None:
    """The manifest goes first, so that nobody takes the rest for finished meanwhile."""
    if folder.exists():
        (folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path, say: Callable[[str], None]) -> Iterator[int]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if option := mounts.private_locks(folder):
        say(f"{folder.parent} is mounted with {option}: only one node at a time may use it")
    with folder.with_name(f"{folder.name}.lock").open("a+") as lock:
        _wait_for(lock, say)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}")
        lock.flush()
        yield lock.fileno()


def _wait_for(lock: TextIOWrapper, say: Callable[[str], None]) -> None:
    # Not in one call, which nobody could end.
    said_at = -WAITING_IS_SAID_EVERY_S
    while not _is_taken(lock):
        if time.monotonic() - said_at >= WAITING_IS_SAID_EVERY_S:
            lock.seek(0)
            say(f"{WAITING} ({lock.read() or 'unknown'})")
            said_at = time.monotonic()
        time.sleep(POLL_S)


def _is_taken(lock: TextIOWrapper) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _seal(folder: Path, manifest: dict[str, Any]) -> None:
    draft = folder / f"{MANIFEST}.tmp"
    with draft.open("w") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / MANIFEST)
