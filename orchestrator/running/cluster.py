"""What the flow needs of a cluster. Ray is the answer; tests have a quicker one."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pydantic

from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Attempt
from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.contract.terms import EngineMode
from jobs.node import inventory
from orchestrator import discretion
from orchestrator.asked import catalogue
from orchestrator.asked.config import Vendor
from orchestrator.running import labels


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a cell needs of its node; of each, if its engine spans several."""

    labels: dict[str, str]
    devices: int
    memory_gib: float
    cpus: int = 1
    nodes: int = 1
    alone: bool = False
    """Nothing else may run there meanwhile."""

    @property
    def all_devices(self) -> int:
        return self.nodes * self.devices

    @property
    def kind(self) -> Hashable:
        """The same of cells that need the same; how much memory is told of each."""
        return (*sorted(self.labels.items()), self.devices, self.cpus, self.nodes, self.alone)

    @property
    def share(self) -> Hashable:
        """What such cells have a share of: the devices of a card, or places on any node."""
        return frozenset(self.labels.items()) if self.devices else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What of a node nobody uses at the moment."""

    devices: int
    cpus: float
    memory_gib: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A machine of the cluster, as its labels and Ray describe it."""

    id: str
    name: str
    address: str
    vendor: Vendor
    card: str | None
    arch: str | None
    devices: int
    cpus: float
    memory_gib: float
    labels: dict[str, str] = field(default_factory=dict)
    driver: str | None = None
    device_memory_gib: float | None = None
    builds: tuple[str, ...] = ()
    """Versions of vLLM that it had when it was looked at."""

    troubles: tuple[str, ...] = ()
    """What is wrong with it, for a person."""

    def carries(self, labels: Mapping[str, str]) -> bool:
        return all(self.labels.get(name) == value for name, value in labels.items())

    def fits(self, needs: Needs) -> bool:
        """Whether it could run such a cell if nothing else ran there."""
        return (
            self.carries(needs.labels)
            and self.devices >= needs.devices
            and self.cpus >= needs.cpus
            and self.memory_gib >= needs.memory_gib
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The end of one attempt: what the node saw, or the infrastructure's own failure."""

    cell_id: str
    number: int
    attempt: Attempt | None = None
    infrastructure_error: str | None = None
    node_id: str | None = None
    """Of several nodes that ran it, the one that this is about."""


BuildKey = tuple[EngineMode, str]
"""An engine mode has builds of its own, by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Builds:
    """What became of builds on the nodes."""

    ready: dict[str, dict[BuildKey, ProvisionedBuild]] = field(default_factory=dict)
    """By node id."""

    troubles: dict[str, dict[BuildKey, str]] = field(default_factory=dict)
    """By node id: why it has no such build."""


Whose = Literal["user", "node"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildReady:
    node_id: str
    key: BuildKey
    build: ProvisionedBuild


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTrouble:
    """The node does not get the build."""

    node_id: str
    key: BuildKey
    message: str
    whose: Whose
    """Who could mend it."""

    def sentence(self, node: str) -> str:
        name = self.key[1]
        return f"build {name} can't be made on {node}: {self.message}; its cells go elsewhere"


BuildNews = str | BuildReady | BuildTrouble
"""A line to say, or the end that a build came to on a node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A build that is wanted where its cells could run."""

    spec: BuildSpec
    deadline_s: float
    needs: tuple[Needs, ...]
    """Of its cells: what some of them need differs."""

    def is_for(self, node: Node) -> bool:
        return any(node.fits(needs) for needs in self.needs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    node: Node


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    node_id: str


News = BuildNews | Joined | Left


def this_machine() -> Node:
    """This machine as a node of its own, without starting anything."""
    seen = inventory.look()
    described = labels.described({}, len(seen.devices), seen, catalogue.cards())
    vendor: Any = seen.vendor
    return Node(
        id="local",
        name=seen.host,
        address="127.0.0.1",
        vendor=vendor,
        card=described.labels.get("vm.card"),
        arch=described.labels.get("vm.arch"),
        devices=len(seen.devices),
        cpus=seen.cpus,
        memory_gib=seen.memory_gib,
        labels=described.labels,
        driver=described.driver,
        device_memory_gib=described.device_memory_gib,
        builds=seen.builds,
        troubles=described.troubles,
    )


class Cluster(Protocol):
    def nodes(self) -> tuple[Node, ...]: ...

    def provision(self, wanted: Sequence[Wanted], cache: str, say: Callable[[str], None]) -> Builds:
        """
        Begin to make every build wherever it is wanted, and wait until some node has it.

        Raises ConfigError for what the user can mend (all builds' mistakes at once),
        ClusterError for what went wrong on the way, if no node has a build in the end.
        """
        ...

    def wait_for(self, needs: Sequence[Needs]) -> None:
        """Of nodes that have these, one each is wished for, and no others any more."""
        ...

    def news(self) -> Iterable[News]:
        """Of nodes and of their builds, since the last call. It waits for nothing."""
        ...

    def submit(
        self,
        request: CellRequest,
        needs: Needs,
        node: Node,
        followers: Sequence[tuple[CellRequest, Node]] = (),
    ) -> None:
        """*followers* run their parts of it at the same time, or none of them does."""
        ...

    def ended(self) -> Sequence[Ended]:
        """The attempts that ended since the last call, after waiting a moment for the first."""
        ...

    def kill(self, cell_id: str) -> None:
        """End what runs the cell, which hears nothing any more. Its attempt ends as one lost."""
        ...

    def close(self) -> None:
        """End all that was started; nothing of it is left when this returns."""
        ...


_attempt_adapter = pydantic.TypeAdapter(Attempt)
_build_adapter = pydantic.TypeAdapter(ProvisionedBuild)


def read_attempt(text: str) -> Attempt:
    """Check what a node sent, and make plain what an engine said. Raises ValidationError."""
    said = _attempt_adapter.validate_json(text)
    if "\\" not in text and text.isascii():
        return said
    plain = discretion.plain(_attempt_adapter.dump_python(said, mode="json"))
    return _attempt_adapter.validate_python(plain)


def read_build(text: str) -> ProvisionedBuild:
    return _build_adapter.validate_json(text)
