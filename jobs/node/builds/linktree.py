"""
A `vllm/` of links into another one, with real files only where they are to differ.

A folder on the path of a real file is real too, so that its bytecode stays here; any
other is one link. What the links lead to is never written to.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.node.builds import digests
from jobs.node.builds.errors import BuildNodeError


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkTree:
    root: Path
    """Holds the `vllm/` that the links lead to."""

    site: Path
    """Holds the `vllm/` of links."""

    def own(self, path: str) -> Path:
        """Make the file real, a copy if the other side has one; its folders too."""
        for folder in reversed(Path(path).parents[:-1]):
            self._own_folder(folder)
        mine = self.site / path
        if mine.is_symlink():
            mine.unlink()
            shutil.copyfile(self.root / path, mine)
        return mine

    def sha256(self, path: str) -> str | None:
        """None: no such file."""
        mine = self.site / path
        return digests.of_file(mine) if mine.is_file() else None

    def entries(self) -> Iterator[Path]:
        """What is real or a link, without bytecode and without what lies behind links."""
        for place, folders, names in os.walk(self.site):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield from (Path(place, name) for name in (*folders, *names))

    def _own_folder(self, folder: Path) -> None:
        mine, other = self.site / folder, self.root / folder
        if mine.is_symlink() and other.is_dir():
            mine.unlink()
        elif mine.exists() or not other.is_dir():
            return
        mine.mkdir()
        for entry in other.iterdir():
            if entry.name != "__pycache__":
                _link(mine / entry.name, entry)


def _link(link: Path, target: Path) -> None:
    try:
        link.symlink_to(target)
    except OSError as error:
        if error.errno in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}:
            raise BuildNodeError(
                f"{link.parent} is on a file system without symbolic links: set `cache` to another"
            ) from error
        raise
