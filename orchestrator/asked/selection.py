"""What a suite says of a cell, by its id: whether it is selected, and what is expected of it."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase, translate
from functools import cache, partial, reduce
from operator import and_, call

from orchestrator.asked.conf_files import AXES
from orchestrator.asked.config import Expectation, Suite

Matching = int
"""A set of patterns, a bit for each."""


class Selection:
    def __init__(self, suite: Suite) -> None:
        rules = suite.constraints
        self._globs = globs = _Globs(
            [
                *suite.select,
                *suite.exclude,
                *(glob for rule in rules for glob in (rule.when, rule.only)),
                *(rule.cells for rule in suite.expectations),
            ]
        )
        self._select = globs.any_of(suite.select)
        self._exclude = globs.any_of(suite.exclude)
        self._constraints = [(globs.any_of([r.when]), globs.any_of([r.only])) for r in rules]
        self._expectations = [(globs.any_of([r.cells]), r.expect) for r in suite.expectations]
        # However many cells there are, they match few different sets of patterns.
        self._by_patterns = cache(self._expected)

    def expectation(self, cell_id: str) -> Expectation | None:
        """None: the cell is not selected."""
        return self._by_patterns(self._globs.matching(cell_id))

    def _expected(self, matching: Matching) -> Expectation | None:
        if not self._selected(matching):
            return None
        fitting = [expect for cells, expect in self._expectations if matching & cells]
        return fitting[-1] if fitting else Expectation()

    def _selected(self, matching: Matching) -> bool:
        return bool(
            matching & self._select
            and not matching & self._exclude
            and all(matching & only for when, only in self._constraints if matching & when)
        )


class _Globs:
    """Patterns, matched with each name on each axis once and not with each cell."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._bits = {pattern: 1 << n for n, pattern in enumerate(dict.fromkeys(patterns))}
        self._split = {p: parts for p in self._bits if (parts := _by_axis(p))}
        self._whole = [
            (bit, re.compile(translate(pattern)).match)
            for pattern, bit in self._bits.items()
            if pattern not in self._split
        ]
        self._of_axis = [cache(partial(self._matching_name, n)) for n in range(len(AXES))]

    def any_of(self, patterns: Iterable[str]) -> Matching:
        return sum(self._bits[pattern] for pattern in dict.fromkeys(patterns))

    def matching(self, cell_id: str) -> Matching:
        found = reduce(and_, map(call, self._of_axis, cell_id.split("/")))
        for bit, match in self._whole:
            if match(cell_id):
                found |= bit
        return found

    def _matching_name(self, axis: int, name: str) -> Matching:
        return sum(
            self._bits[pattern]
            for pattern, parts in self._split.items()
            if fnmatchcase(name, parts[axis])
        )


def _by_axis(pattern: str) -> list[str] | None:
    """An id has as many slashes as these, so that none is left over for a `*` to match."""
    if pattern == "*":
        return ["*"] * len(AXES)
    parts = pattern.split("/")
    return parts if len(parts) == len(AXES) and "[" not in pattern else None
