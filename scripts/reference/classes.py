"""The classes that a schema describes, by name, with all that they are made of."""

import dataclasses
import enum
import typing
from collections.abc import Iterator
from typing import Any


def reached_from(cls: type) -> dict[str, type]:
    """*cls* first, then what its fields hold, in their order."""
    found: dict[str, type] = {}
    _reach(cls, found)
    return found


def _reach(kind: Any, found: dict[str, type]) -> None:
    for cls in _classes_in(kind):
        if cls.__name__ not in found:
            found[cls.__name__] = cls
            if dataclasses.is_dataclass(cls):
                for hint in typing.get_type_hints(cls).values():
                    _reach(hint, found)


def _classes_in(kind: Any) -> Iterator[type]:
    for part in typing.get_args(kind):
        yield from _classes_in(part)
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)):
        yield kind
