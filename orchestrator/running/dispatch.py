"""
Which cell goes where, and when. Pure: it knows neither clock nor Ray, and simulations use it too.

Cells that share a host wait in one group. A free place goes on with the group that it has a
host for; else it takes the group with the most left to do for each place that works on it, if
that is worth the start of another host.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from orchestrator.running.cluster import Needs, Node
from orchestrator.running.forecast import Work


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """A cell that waits for its place."""

    cell_id: str
    needs: Needs
    work: Work
    build: Hashable
    """What a node has to have ready."""

    avoid: frozenset[str] = frozenset()
    """Ids of nodes where it had bad luck: taken only where there is no other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """What alike cells need; how much memory is told of each."""

    labels: tuple[tuple[str, str], ...]
    devices: int
    cpus: int


@dataclass(eq=False, kw_only=True, slots=True)
class _Group:
    kind: _Kind
    build: Hashable
    host: Hashable
    queue: list[tuple[float, int, Waiting]] = field(default_factory=list)
    """A heap, the longest first."""

    left_s: float = 0.0
    boot_s: float = 0.0
    working: Counter[str] = field(default_factory=Counter)
    """How many of its cells run, by node."""

    hosts: set[str] = field(default_factory=set)
    """Nodes that have a host of it."""

    version: int = 0

    @property
    def score(self) -> float:
        return (self.left_s + self.boot_s) / (1 + self.working.total())

    def is_worth_a_host(self) -> bool:
        """Or else whoever works on it is done before another host has started."""
        return self.left_s / max(1, self.working.total()) > self.boot_s or not self.working.total()


@dataclass(eq=False, kw_only=True, slots=True)
class _Place:
    node: Node
    cpus: float
    devices: int
    memory_gib: float
    open: set[Hashable] = field(default_factory=set)
    """Builds that are ready."""

    closed: set[Hashable] = field(default_factory=set)
    """Builds that can't be made there."""

    groups: dict[_Group, None] = field(default_factory=dict)
    """Those that have a host there."""

    shunned: bool = False
    known: dict[_Kind, bool] = field(default_factory=dict)

    def fits(self, kind: _Kind) -> bool:
        """Whether the node, with nothing on it, could take cells of the kind."""
        if kind not in self.known:
            needs = Needs(
                labels=dict(kind.labels), devices=kind.devices, cpus=kind.cpus, memory_gib=0.0
            )
            self.known[kind] = self.node.fits(needs)
        return self.known[kind]

    def has_room(self, kind: _Kind) -> bool:
        return self.cpus >= kind.cpus and self.devices >= kind.devices

    def take(self, needs: Needs, sign: int) -> None:
        self.cpus -= sign * needs.cpus
        self.devices -= sign * needs.devices
        self.memory_gib -= sign * needs.memory_gib


class Dispatcher:
    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._groups: dict[Hashable, _Group] = {}
        self._heaps: dict[_Kind, list[tuple[float, int, int, _Group]]] = {}
        """Of each kind its groups, the best first; an entry of an old version does not count."""

        self._waiting: Counter[_Kind] = Counter()
        self._running: dict[str, tuple[Waiting, _Group, str]] = {}
        self._number = itertools.count()
        self._stale: set[str] = set()
        """Nodes where something may be able to start since they were last looked at."""

        self._may_strand = True

    def add(self, waiting: Waiting) -> None:
        needs, work = waiting.needs, waiting.work
        kind = _Kind(
            labels=tuple(sorted(needs.labels.items())), devices=needs.devices, cpus=needs.cpus
        )
        key = kind, waiting.build, work.host
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(kind=kind, build=waiting.build, host=work.host)
        group.boot_s = max(group.boot_s, work.boot_s if work.host is not None else 0.0)
        heapq.heappush(group.queue, (-work.seconds, next(self._number), waiting))
        group.left_s += work.seconds
        self._waiting[kind] += 1
        self._changed(group)
        self._stale |= self._places.keys()
        self._may_strand = True

    def join(self, node: Node) -> None:
        self._places[node.id] = _Place(
            node=node, cpus=node.cpus, devices=node.devices, memory_gib=node.memory_gib
        )
        self._stale.add(node.id)

    def leave(self, node_id: str) -> tuple[str, ...]:
        """The node is gone; returns the cells that ran on it, which have not ended for us."""
        self._places.pop(node_id, None)
        self._may_strand = True
        self._stale |= self._places.keys()
        for group in self._groups.values():
            group.hosts.discard(node_id)
        return tuple(cell for cell, (_, _, where) in self._running.items() if where == node_id)

    def open(self, node_id: str, build: Hashable) -> None:
        """The node has the build."""
        if place := self._places.get(node_id):
            place.open.add(build)
            self._stale.add(node_id)

    def close(self, node_id: str, build: Hashable) -> None:
        """The build can't be made on the node."""
        if place := self._places.get(node_id):
            place.closed.add(build)
            self._may_strand = True

    def shun(self, node_id: str) -> None:
        """From now on the node only gets what no other can take."""
        if place := self._places.get(node_id):
            place.shunned = True
            self._stale |= self._places.keys()

    def starts(self) -> Iterator[tuple[Waiting, Node]]:
        """What can start now, and where. Each of these runs from now on."""
        stale = [self._places[node_id] for node_id in self._stale if node_id in self._places]
        self._stale.clear()
        held: set[str] = set()
        for kind in self._by_rank():
            fitting = [place for place in stale if place.fits(kind)]
            free = [p for p in fitting if not (kind.devices and p.node.id in held)]
            yield from self._started(kind, free)
            if kind.devices > 1 and (place := self._to_hold(kind)):
                held.add(place.node.id)
        self._stale |= held

    def ended(self, cell_id: str) -> None:
        waiting, group, node_id = self._running.pop(cell_id)
        group.working[node_id] -= 1
        if not group.working[node_id]:
            del group.working[node_id]
        self._changed(group)
        if place := self._places.get(node_id):
            place.take(waiting.needs, -1)
            self._stale.add(node_id)

    def forget(self) -> tuple[Waiting, ...]:
        """Take out, and return, all that waits."""
        return self._drained(lambda *_: True)

    def stranded(self) -> tuple[Waiting, ...]:
        """Take out, and return, what waits and has no node that could take it."""
        if not self._may_strand:
            return ()
        self._may_strand = False
        return self._drained(lambda waiting, group: not self._has_place(waiting, group))

    @property
    def waiting(self) -> int:
        return self._waiting.total()

    @property
    def running(self) -> int:
        return len(self._running)

    def _by_rank(self) -> list[_Kind]:
        """Of those that wait, the hardest to place first: many devices, then few nodes."""
        kinds = [kind for kind, waiting in self._waiting.items() if waiting]
        return sorted(kinds, key=lambda kind: (-kind.devices, self._nodes_for(kind)))

    def _nodes_for(self, kind: _Kind) -> int:
        return sum(place.fits(kind) for place in self._places.values())

    def _started(self, kind: _Kind, places: list[_Place]) -> Iterator[tuple[Waiting, Node]]:
        """One on each node in turn, so that few cells spread over many nodes."""
        while places:
            places.sort(key=lambda place: (-place.devices, -place.cpus))
            places = [place for place in places if place.has_room(kind)]
            for place in [*places]:
                if found := self._next(kind, place):
                    yield self._start(*found, place), place.node
                else:
                    places.remove(place)

    def _start(self, waiting: Waiting, group: _Group, place: _Place) -> Waiting:
        place.take(waiting.needs, 1)
        place.groups.setdefault(group)
        group.hosts.add(place.node.id)
        group.left_s -= waiting.work.seconds
        self._waiting[group.kind] -= 1
        group.working[place.node.id] += 1
        self._running[waiting.cell_id] = waiting, group, place.node.id
        self._changed(group)
        return waiting

    def _next(self, kind: _Kind, place: _Place) -> tuple[Waiting, _Group] | None:
        left = [
            group
            for group in place.groups
            if group.kind == kind and group.queue and not group.working[place.node.id]
        ]
        for group in sorted(left, key=lambda group: -group.score):
            if found := self._taken(group, place):
                return found, group
        return self._best(kind, place)

    def _best(self, kind: _Kind, place: _Place) -> tuple[Waiting, _Group] | None:
        heap = self._heaps[kind]
        passed: list[tuple[float, int, int, _Group]] = []
        best: tuple[Waiting, _Group] | None = None
        while heap and best is None:
            entry = heapq.heappop(heap)
            *_, version, group = entry
            if version != group.version or not group.queue:
                continue
            passed.append(entry)
            goes = group.build in place.open and (
                place.node.id in group.hosts or group.host is None or group.is_worth_a_host()
            )
            if goes and (found := self._taken(group, place)):
                best = found, group
        for entry in passed:
            heapq.heappush(heap, entry)
        return best

    def _taken(self, group: _Group, place: _Place) -> Waiting | None:
        """The longest of the group that the place has memory for."""
        passed: list[tuple[float, int, Waiting]] = []
        taken: Waiting | None = None
        while group.queue and taken is None:
            entry = heapq.heappop(group.queue)
            if self._may_go(entry[2], group, place):
                taken = entry[2]
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(group.queue, entry)
        return taken

    def _may_go(self, waiting: Waiting, group: _Group, place: _Place) -> bool:
        if waiting.needs.memory_gib > place.memory_gib:
            return False
        if not place.shunned and place.node.id not in waiting.avoid:
            return True
        return not any(
            self._could_take(group, other)
            for other in self._places.values()
            if not other.shunned and other.node.id not in waiting.avoid
        )

    def _could_take(self, group: _Group, place: _Place) -> bool:
        return place.fits(group.kind) and group.build not in place.closed

    def _has_place(self, waiting: Waiting, group: _Group) -> bool:
        return any(
            self._could_take(group, place) and waiting.needs.memory_gib <= place.node.memory_gib
            for place in self._places.values()
        )

    def _to_hold(self, kind: _Kind) -> _Place | None:
        """Where a gang that still waits will find its devices: they are not given to others."""
        if not self._waiting[kind]:
            return None
        fitting = [place for place in self._places.values() if place.fits(kind)]
        return max(fitting, key=lambda place: place.devices, default=None)

    def _changed(self, group: _Group) -> None:
        group.version += 1
        if group.queue:
            entry = -group.score, next(self._number), group.version, group
            heapq.heappush(self._heaps.setdefault(group.kind, []), entry)

    def _drained(self, goes: Callable[[Waiting, _Group], bool]) -> tuple[Waiting, ...]:
        out: list[Waiting] = []
        for group in self._groups.values():
            gone = [waiting for *_, waiting in sorted(group.queue) if goes(waiting, group)]
            if gone:
                group.queue = [each for each in group.queue if not goes(each[2], group)]
                heapq.heapify(group.queue)
                group.left_s -= sum(waiting.work.seconds for waiting in gone)
                self._waiting[group.kind] -= len(gone)
                self._changed(group)
                out += gone
        return tuple(out)
