"""What lies in a folder, without bytecode."""

import os
from collections.abc import Iterator
from pathlib import Path


def files(folder: Path) -> Iterator[Path]:
    """All of them, in order."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(place, name) for name in sorted(names) if not name.endswith(".pyc"))


def count(folder: Path) -> int:
    return sum(1 for _ in files(folder))


def mib(folder: Path) -> int:
    return sum(path.lstat().st_size for path in files(folder)) // 2**20
