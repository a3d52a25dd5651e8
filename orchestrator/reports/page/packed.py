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
    Parts stand before what they are part of.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.shapes: list[list[str]] = []
        self._refs: dict[Hashable, Ref] = {}
        self._numbers: dict[tuple[str, ...], int] = {}

    def put(self, value: Any) -> Ref:
        if isinstance(value, str):
            return self._ref(str(value), str(value))
        if value is None or isinstance(value, int | float):
            # True is 1 to a dict.
            return self._ref((type(value), value), value)
        refs = tuple(self._parts(value))
        return self._ref(refs, refs)

    def _parts(self, value: Any) -> list[int]:
        if dataclasses.is_dataclass(value):
            names = tuple(value.__dataclass_fields__)
            return [self._shape(names), *(self.put(getattr(value, name)) for name in names)]
        if isinstance(value, Mapping):
            return [self._shape(tuple(value)), *map(self.put, value.values())]
        return [*map(self.put, value)]

    def _ref(self, key: Hashable, value: Any) -> Ref:
        ref = self._refs.setdefault(key, len(self.values))
        if ref == len(self.values):
            self.values.append(value)
        return ref

    def _shape(self, keys: tuple[str, ...]) -> int:
        number = self._numbers.setdefault(keys, -len(self.shapes) - 1)
        if -number > len(self.shapes):
            self.shapes.append([*keys])
        return number
