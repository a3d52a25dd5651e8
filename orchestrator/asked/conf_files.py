"""Which file of conf/ a key comes from, so that a message can name it."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
INSTALLED = (_PACKAGE / "conf").is_dir()
CONF = (_PACKAGE if INSTALLED else _PACKAGE.parent) / "conf"
"""Beside the package in a checkout, inside of it when installed from a wheel."""

AXES = ("hardware", "model", "backend", "build")


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfFiles:
    folders: tuple[Path, ...]
    """conf/, and what `--config-dir` adds."""

    choices: Mapping[str, str] = field(default_factory=dict)
    """The file that was chosen of a group of which there can be one: suite, gate."""

    def find(self, name: str) -> Path | None:
        """The first folder's file of that name; an absolute name is itself."""
        return next((folder / name for folder in self.folders if (folder / name).is_file()), None)

    def place(self, *path: str) -> str:
        """`conf/build/x.yaml: build.x.release`, or the key alone where no file is its home."""
        group, key = path[0], ".".join(path)
        name = path[1] if group in AXES and len(path) > 1 else self.choices.get(group)
        found = self.find(f"{group}/{name}.yaml") if name else None
        return f"{found.parents[1].name}/{group}/{name}.yaml: {key}" if found else key


def nearest(word: str, allowed: Sequence[str]) -> str:
    """` Did you mean "x"?`, or nothing if nothing is near."""
    matches = difflib.get_close_matches(word, allowed, n=1)
    return f' Did you mean "{matches[0]}"?' if matches else ""
