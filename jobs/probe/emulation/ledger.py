"""
What is not real in this process. Whatever is replaced or made up goes through here,
so that nothing can be missing from the record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ledger:
    stubs: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)

    def replace(self, owner: Any, name: str, by: Any) -> None:
        """Give *owner*, a module or a class, another *name*."""
        setattr(owner, name, by)
        self.replaced.append(f"{_path(owner)}.{name}")

    def replace_all(self, owner: Any, by: Mapping[str, Any]) -> None:
        for name, value in by.items():
            self.replace(owner, name, value)

    def stub(self, name: str) -> None:
        """Say that *name* exists by name only."""
        self.stubs.append(name)

    def keep(self, thing: Any) -> None:
        """As long as this process lives."""
        self.kept.append(thing)

    def note(self, text: str) -> None:
        self.notes.append(text)


def _path(owner: Any) -> str:
    return f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else owner.__name__
