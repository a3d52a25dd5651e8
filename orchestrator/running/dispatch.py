"""
Which cell goes where, and when. Pure: it knows neither clock nor Ray, and simulations use it too.

Cells that share a host wait in one group. A free place goes on with the group that it has a
host for; else it takes the group with the most left to do for each place that works on it, if
that is worth the start of another host.

Where several suites wait for the same, the one that has had the least of it goes first.
"""

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator

from orchestrator.running import gangs
from orchestrator.running.cluster import Needs, Node
from orchestrator.running.turns import Turns
from orchestrator.running.waiting import Group, Kind, Place, Waiting


class Dispatcher:
    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._groups: dict[Hashable, Group] = {}
        self._kinds: dict[Hashable, Kind] = {}
        self._running: dict[str, tuple[Waiting, Group, tuple[str, ...]]] = {}
        self._turns = Turns()
        self._number = itertools.count()
        self._stale: set[str] = set()
        """Nodes where something may be able to start since they were last looked at."""

        self._may_strand = True

    def add(self, waiting: Waiting) -> None:
        kind, work = self._kind_of(waiting), waiting.work
        key = kind, waiting.build, work.host
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(kind=kind, build=waiting.build, host=work.host)
        group.boot_s = max(group.boot_s, work.boot_s if work.host is not None else 0.0)
        heapq.heappush(group.queue, (-work.seconds, next(self._number), waiting))
        group.left_s += work.seconds
        kind.waiting += 1
        self._changed(group)
        self._stale |= self._places.keys()
        self._may_strand = True

    def join(self, node: Node) -> None:
        place = self._places[node.id] = Place(
            node=node, cpus=node.cpus, devices=node.devices, memory_gib=node.memory_gib
        )
        for kind in self._kinds.values():
            if node.fits(kind.needs):
                kind.places.append(place)
        self._stale.add(node.id)

    def leave(self, node_id: str) -> tuple[str, ...]:
        """The node is gone; returns the cells that ran on it, which have not ended for us."""
        place = self._places.pop(node_id, None)
        for kind in self._kinds.values():
            kind.places = [each for each in kind.places if each is not place]
        self._may_strand = True
        self._stale |= self._places.keys()
        for group in self._groups.values():
            group.hosts.discard(node_id)
        return tuple(cell for cell, (_, _, where) in self._running.items() if node_id in where)

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

    def give_ahead(self, node_id: str, cells: int) -> None:
        """So many more than the node can run at once: where they are short, the way is long."""
        if (place := self._places.get(node_id)) and place.ahead != cells:
            place.ahead = cells
            self._stale.add(node_id)

    def shun(self, node_id: str) -> None:
        """From now on the node only gets what no other can take."""
        if place := self._places.get(node_id):
            place.shunned = True
            self._stale |= self._places.keys()

    def starts(self) -> Iterator[tuple[Waiting, tuple[Node, ...]]]:
        """What can start now, and where: the first of several nodes leads. It runs from now on."""
        stale = {place for name in self._stale if (place := self._places.get(name))}
        self._stale.clear()
        held: set[str] = set()
        kept: list[tuple[Place, Needs]] = []
        for kind in self._turns.order(kind for kind in self._kinds.values() if kind.waiting):
            if kind.needs.nodes > 1:
                yield from gangs.started(kind, self._start, kept)
                continue
            free = [place for place in kind.places if place in stale]
            if kind.needs.devices:
                free = [place for place in free if place.node.id not in held]
            yield from self._started(kind, free)
            if kind.needs.devices > 1 and kind.waiting:
                held |= self._to_hold(kind)
        for place, needs in kept:
            place.take(needs, -1)
            held.add(place.node.id)
        self._stale |= held

    def ended(self, cell_id: str) -> None:
        waiting, group, node_ids = self._running.pop(cell_id)
        for node_id in node_ids:
            group.working[node_id] -= 1
            if not group.working[node_id]:
                del group.working[node_id]
            if place := self._places.get(node_id):
                place.take(waiting.needs, -1)
                self._stale.add(node_id)
        self._changed(group)

    def forget(self) -> tuple[Waiting, ...]:
        """Take out, and return, all that waits."""
        return self._drained(lambda *_: True)

    def stranded(self) -> tuple[Waiting, ...]:
        """Take out, and return, what waits and has no node that could take it."""
        if not self._may_strand:
            return ()
        self._may_strand = False
        return self._drained(lambda waiting, group: not self._has_place(waiting, group))

    def homeless(self) -> tuple[Needs, ...]:
        """What cells that wait need and no node has."""
        return tuple(
            kind.needs for kind in self._kinds.values() if kind.waiting and not kind.places
        )

    @property
    def waiting(self) -> int:
        return sum(kind.waiting for kind in self._kinds.values())

    @property
    def running(self) -> int:
        return len(self._running)

    def _kind_of(self, waiting: Waiting) -> Kind:
        needs, suite = waiting.needs, waiting.suite
        key = needs.kind, suite
        if key not in self._kinds:
            alike = dataclasses.replace(needs, memory_gib=0.0)
            places = [place for place in self._places.values() if place.node.fits(alike)]
            self._kinds[key] = Kind(needs=alike, suite=suite, places=places)
        return self._kinds[key]

    def _started(
        self, kind: Kind, places: list[Place]
    ) -> Iterator[tuple[Waiting, tuple[Node, ...]]]:
        """One on each node in turn, so that few cells spread over many nodes."""
        while places:
            places.sort(key=lambda place: (-place.devices, -place.cpus))
            places = [place for place in places if place.has_room(kind.needs)]
            for place in [*places]:
                if found := self._next(kind, place):
                    yield self._start(*found, (place,)), (place.node,)
                else:
                    places.remove(place)

    def _start(self, waiting: Waiting, group: Group, places: tuple[Place, ...]) -> Waiting:
        for place in places:
            place.take(waiting.needs, 1)
            place.groups.setdefault(group)
            group.hosts.add(place.node.id)
            group.working[place.node.id] += 1
        group.left_s -= waiting.work.seconds
        group.kind.waiting -= 1
        self._turns.note(group.kind, waiting)
        self._running[waiting.cell_id] = waiting, group, tuple(place.node.id for place in places)
        self._changed(group)
        return waiting

    def _next(self, kind: Kind, place: Place) -> tuple[Waiting, Group] | None:
        left = [
            group
            for group in place.groups
            if group.kind is kind and group.queue and not group.working[place.node.id]
        ]
        for group in sorted(left, key=lambda group: -group.score):
            if found := self._taken(group, place):
                return found, group
        return self._best(kind, place)

    def _best(self, kind: Kind, place: Place) -> tuple[Waiting, Group] | None:
        heap = kind.groups
        passed: list[tuple[float, int, int, Group]] = []
        best: tuple[Waiting, Group] | None = None
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

    def _taken(self, group: Group, place: Place) -> Waiting | None:
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

    def _may_go(self, waiting: Waiting, group: Group, place: Place) -> bool:
        if not place.has_memory(waiting.needs):
            return False
        # What is given ahead is of the host that is at work, or another would have to start.
        if not place.is_free_for(waiting.needs) and not group.working[place.node.id]:
            return False
        if not place.shunned and place.node.id not in waiting.avoid:
            return True
        return not any(
            group.build not in other.closed
            for other in group.kind.places
            if not other.shunned and other.node.id not in waiting.avoid
        )

    def _has_place(self, waiting: Waiting, group: Group) -> bool:
        if waiting.needs.nodes > 1:
            return gangs.can_ever(waiting, group)
        return any(
            group.build not in place.closed and waiting.needs.memory_gib <= place.node.memory_gib
            for place in group.kind.places
        )

    def _to_hold(self, kind: Kind) -> set[str]:
        """Where a gang that still waits will find its devices: they are not given to others."""
        place = max(kind.places, key=lambda place: place.devices, default=None)
        return {place.node.id} if place else set()

    def _changed(self, group: Group) -> None:
        group.version += 1
        if group.queue:
            entry = -group.score, next(self._number), group.version, group
            heapq.heappush(group.kind.groups, entry)

    def _drained(self, goes: Callable[[Waiting, Group], bool]) -> tuple[Waiting, ...]:
        out: list[Waiting] = []
        for group in self._groups.values():
            gone = [waiting for *_, waiting in sorted(group.queue) if goes(waiting, group)]
            if gone:
                group.queue = [each for each in group.queue if not goes(each[2], group)]
                heapq.heapify(group.queue)
                group.left_s -= sum(waiting.work.seconds for waiting in gone)
                group.kind.waiting -= len(gone)
                self._changed(group)
                out += gone
        return tuple(out)
