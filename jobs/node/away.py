"""
Attempts on a node that does not see the run's folder: it has one of its own for each, and what
the attempt left in there goes back with it.
"""

import dataclasses
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobs.contract.asked import CellRequest, Home
from jobs.node import caches, occupancy
from jobs.node.cell_files import CellFiles

LARGEST = 16 * 2**20
"""Bytes of one file, which is a log or a report. Of a larger one the beginning goes back."""

Files = dict[str, bytes]
"""Names to contents, each compressed by zlib."""


def sees(home: Home) -> bool:
    """Whether the folder of that name is the run's own: other machines have such names too."""
    with suppress(OSError):
        return Path(home.folder, home.witness).is_file()
    return False


def folder_of(home: Home, workdir: str, cache: str) -> Path:
    inside = Path(workdir).relative_to(home.folder)
    return caches.folder(cache) / "away" / home.witness.lstrip(".") / inside


@contextmanager
def moved(request: CellRequest) -> Iterator[tuple[CellRequest, Files]]:
    """The request as this node can carry it out; the files are there at the end."""
    files: Files = {}
    if request.home is None:
        yield request, files
        return
    if sees(request.home):
        with occupancy.held(request.home, request.workdir):
            yield request, files
        return
    folder = folder_of(request.home, request.workdir, request.cache)
    try:
        yield dataclasses.replace(request, workdir=str(folder)), files
        files |= _packed(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _prune(folder, caches.folder(request.cache))


def phases(home: Home, workdirs: list[str], cache: str) -> dict[str, str | None]:
    """Of the attempts that this node has begun with in folders of its own, by their workdir."""
    found: dict[str, str | None] = {}
    for workdir in workdirs:
        files = CellFiles(folder=folder_of(home, workdir, cache))
        if files.request.exists():
            found[workdir] = files.read_phase() if files.phase.exists() else None
    return found


def _prune(folder: Path, cache: Path) -> None:
    """Other attempts of the run may be there still."""
    with suppress(OSError):
        for above in folder.parents:
            if above == cache:
                break
            above.rmdir()


def _packed(folder: Path) -> Files:
    files: Files = {}
    for file in sorted(folder.iterdir()):
        # An engine may have put a link or a pipe there.
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                files[file.name] = zlib.compress(content.read(LARGEST), 1)
    return files
