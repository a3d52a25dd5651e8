"""On which nodes an engine that spans several can run: on all of them at once, or not. Pure."""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from orchestrator.running.cluster import Needs, Node
from orchestrator.running.waiting import Group, Kind, Place, Waiting


def shared(nodes: Iterable[Node], needs: Needs) -> frozenset[str]:
    """Ids of those nodes, each of which fits, that one engine can span: their card is the same."""
    there = [*nodes]
    of_card = Counter(_card(node, needs) for node in there)
    return frozenset(node.id for node in there if of_card[_card(node, needs)] >= needs.nodes)


def can_ever(waiting: Waiting, group: Group) -> bool:
    """Once others have ended, and builds are made."""
    return bool(shared((place.node for place in _usable(waiting, group)), waiting.needs))


Start = Callable[[Waiting, Group, tuple[Place, ...]], Waiting]


def started(
    kind: Kind, start: Start, kept: list[tuple[Place, Needs]]
) -> Iterator[tuple[Waiting, tuple[Node, ...]]]:
    """
    Each that can, on all of its nodes at once. For the first that can't, its share is taken of
    those where it will be free soonest, and noted in *kept*: nobody else gets that meanwhile.
    """
    is_kept = False
    for group in kind.best_first():
        while group.queue:
            waiting = group.queue[0][2]
            places = _free(waiting, group)
            if not places:
                break
            heapq.heappop(group.queue)
            yield start(waiting, group, places), tuple(place.node for place in places)
        if group.queue and not is_kept:
            is_kept = True
            for place in _to_keep(group.queue[0][2], group):
                place.take(kind.needs, 1)
                kept.append((place, kind.needs))


def _free(waiting: Waiting, group: Group) -> tuple[Place, ...]:
    """The places where it can start now; none if it can't."""
    ready = [place for place in _good(waiting, group) if place.is_free_for(waiting.needs)]
    return _chosen(ready, waiting, group)


def _to_keep(waiting: Waiting, group: Group) -> tuple[Place, ...]:
    return _chosen(_good(waiting, group), waiting, group)


def _chosen(places: Sequence[Place], waiting: Waiting, group: Group) -> tuple[Place, ...]:
    """The best of those that one engine can span: free ones first, then those with its host."""
    needs = waiting.needs
    ranked = sorted(_together(places, needs), key=lambda place: _rank(place, waiting, group))
    alike = (place for place in ranked if _card(place.node, needs) == _card(ranked[0].node, needs))
    return tuple(itertools.islice(alike, needs.nodes))


def _rank(place: Place, waiting: Waiting, group: Group) -> tuple[bool, bool, int, float]:
    is_late = not place.is_free_for(waiting.needs)
    return is_late, place.node.id not in group.hosts, -place.devices, -place.cpus


def _good(waiting: Waiting, group: Group) -> list[Place]:
    """With the build; without nodes of bad luck, if there are others enough."""
    usable = _usable(waiting, group)
    lucky = [place for place in usable if not place.shunned and place.node.id not in waiting.avoid]
    good = _together(lucky, waiting.needs) or _together(usable, waiting.needs)
    return [place for place in good if group.build in place.open]


def _usable(waiting: Waiting, group: Group) -> list[Place]:
    return [
        place
        for place in group.kind.places
        if group.build not in place.closed and waiting.needs.memory_gib <= place.node.memory_gib
    ]


def _together(places: Sequence[Place], needs: Needs) -> list[Place]:
    ids = shared((place.node for place in places), needs)
    return [place for place in places if place.node.id in ids]


def _card(node: Node, needs: Needs) -> str | None:
    """Engines that need no device run beside any card."""
    return node.card if needs.devices else None
