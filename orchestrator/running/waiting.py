"""What the dispatcher keeps account of: cells that wait, in groups and kinds, and places. Pure."""

from collections import Counter
from collections.abc import Hashable
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

    suite: str = ""
    avoid: frozenset[str] = frozenset()
    """Ids of nodes where it had bad luck: taken only where there is no other."""


@dataclass(eq=False, kw_only=True, slots=True)
class Kind:
    """Alike cells of a suite: they need the same of a node. How much memory is told of each."""

    needs: Needs
    suite: str
    places: "list[Place]" = field(default_factory=list)
    """Those that could take such cells if nothing else ran there."""

    groups: "list[tuple[float, int, int, Group]]" = field(default_factory=list)
    """A heap, the best first; an entry of a group's old version does not count."""

    waiting: int = 0

    def best_first(self) -> "list[Group]":
        """Its groups that have something left."""
        return [
            group
            for *_, version, group in sorted(self.groups)
            if version == group.version and group.queue
        ]


@dataclass(eq=False, kw_only=True, slots=True)
class Group:
    kind: Kind
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
class Place:
    node: Node
    cpus: float
    devices: int
    memory_gib: float
    open: set[Hashable] = field(default_factory=set)
    """Builds that are ready."""

    closed: set[Hashable] = field(default_factory=set)
    """Builds that can't be made there."""

    groups: dict[Group, None] = field(default_factory=dict)
    """Those that have a host there."""

    ahead: int = 0
    """How many cells it is given beyond what it can run at once."""

    shunned: bool = False

    def is_free_for(self, needs: Needs) -> bool:
        """Whether a cell could run there now, rather than be given ahead."""
        return (
            self.cpus >= self._cpus(needs)
            and self.devices >= needs.devices
            and self.memory_gib >= needs.memory_gib
        )

    def has_room(self, needs: Needs) -> bool:
        return (
            self.cpus + self._ahead(needs) * needs.cpus >= self._cpus(needs)
            and self.devices >= needs.devices
        )

    def has_memory(self, needs: Needs) -> bool:
        return self.memory_gib + self._ahead(needs) * needs.memory_gib >= needs.memory_gib

    def _ahead(self, needs: Needs) -> int:
        """A device that is waited for in vain costs more than a way to and fro."""
        return 0 if needs.devices or needs.alone else self.ahead

    def _cpus(self, needs: Needs) -> float:
        return self.node.cpus if needs.alone else needs.cpus

    def take(self, needs: Needs, sign: int) -> None:
        self.cpus -= sign * self._cpus(needs)
        self.devices -= sign * needs.devices
        self.memory_gib -= sign * needs.memory_gib
