"""
Folders that are made once and then shared by every run on the node.

A folder counts as finished when its manifest is there, which is written last. Whoever
makes one holds its lock; a run that is killed while making leaves a folder without a
manifest, which the next one wipes.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from jobs.node.builds.errors import BuildNodeError

MANIFEST = "manifest.json"
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
    found = _found(folder, look, say)
    if found is not None:
        return found, True
    with _locked(folder, say) as lock:
        found = _found(folder, look, say)
        if found is not None:
            return found, True
        _make(folder, make, lock)
        found = _found(folder, look, say)
    if found is None:
        raise BuildNodeError(f"{folder} was made, and is broken already")
    return found, False


class Stale(Exception):  # noqa: N818  it is an answer, not an error
    """The folder is not what its manifest says; the argument tells how."""


def _found(
    folder: Path, look: Callable[[dict[str, Any]], T], say: Callable[[str], None]
) -> T | None:
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
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run that provisions it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _seal(folder: Path, manifest: dict[str, Any]) -> None:
    draft = folder / f"{MANIFEST}.tmp"
    with draft.open("w") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / MANIFEST)
