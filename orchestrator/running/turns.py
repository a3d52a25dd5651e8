"""Whose turn it is: what is hard to place, and of suites the one that is behind. Pure."""

from collections import defaultdict
from collections.abc import Hashable, Iterable

from orchestrator.running.waiting import Kind, Waiting


class Turns:
    def __init__(self) -> None:
        self._had: defaultdict[Hashable, float] = defaultdict(float)
        """Seconds of what is shared, by that and by suite."""

    def note(self, kind: Kind, waiting: Waiting) -> None:
        """That a cell of that kind starts."""
        amount = waiting.needs.all_devices or waiting.needs.cpus
        self._had[kind.needs.share, kind.suite] += waiting.work.seconds * amount

    def order(self, kinds: Iterable[Kind]) -> list[Kind]:
        """
        What needs a card first. Of each card, or of cores, the suite that has had the least; of
        what it waits for, the hardest to place: many devices, then few nodes.
        """
        there = [*kinds]
        had = {kind: self._had[kind.needs.share, kind.suite] for kind in there}
        least = {kind.needs.share: had[kind] for kind in sorted(there, key=lambda kind: -had[kind])}

        def rank(kind: Kind) -> tuple[float, ...]:
            needs, ahead = kind.needs, had[kind] - least[kind.needs.share]
            return (not needs.devices, ahead, -needs.nodes, -needs.devices, len(kind.places))

        return sorted(there, key=rank)
