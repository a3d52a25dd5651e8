"""Values as compact JSON: whatever comes again, a word or a whole block, is written once."""

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

Ref = int
"""Where in `values` something stands."""


class Pool:
    """
    Text, numbers and null stand for themselves, a list is the refs of its items, and a mapping
    those of its values, behind the number of its keys: -1 for the first shape, -2 for the second.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.shapes: list[list[str]] = []
        self._refs: dict[Hashable, Ref] = {}
        self._numbers: dict[tuple[str, ...], int] = {}

    def put(self, value: Any) -> Ref:
        if dataclasses.is_dataclass(value):
            value = {field: getattr(value, field) for field in value.__dataclass_fields__}
        if isinstance(value, Mapping):
            refs = (self._shape(tuple(value)), *map(self.put, value.values()))
        elif isinstance(value, list | tuple):
            refs = tuple(map(self.put, value))
        else:
            plain = str(value) if isinstance(value, str) else value
            # True is 1 to a dict.
            return self._ref((type(plain), plain), plain)
        return self._ref(refs, [*refs])

    def _ref(self, key: Hashable, value: Any) -> Ref:
        if key not in self._refs:
            self._refs[key] = len(self.values)
            self.values.append(value)
        return self._refs[key]

    def _shape(self, keys: tuple[str, ...]) -> int:
        if keys not in self._numbers:
            self.shapes.append([*keys])
            self._numbers[keys] = -len(self.shapes)
        return self._numbers[keys]
