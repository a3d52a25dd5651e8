"""The nodes that Ray has, and what is done on each of them."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic
import ray
import ray.exceptions
from ray._private import state
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from jobs.contract.nodes import NodeSeen
from jobs.node import caches, ray_tasks
from orchestrator.asked import catalogue
from orchestrator.running import labels
from orchestrator.running.cluster import Node, Room
from orchestrator.running.on_ray.wording import one_line

REACH_S = 5.0
LOOK_S = 30.0
"""A worker has to start for it, next to all others that start then."""

Answer = NodeSeen | str
"""What a node saw of itself, or what is wrong with it."""

_adapter = pydantic.TypeAdapter(NodeSeen)


class Nodes:
    """Of a cluster. Each looks at itself once, when it is new."""

    def __init__(self, known: Mapping[str, NodeSeen], cache: str = caches.USUAL) -> None:
        """*known* have been looked at, by id."""
        self._cache = cache
        self._answers: dict[str, Answer] = dict(known)
        self._asked: dict[Any, tuple[str, float]] = {}
        """By Ray's reference: the id of the node, and until when it may answer."""

        self._look: Any = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.look_at_node)

    def all(self) -> tuple[Node, ...]:
        """After waiting for those that are new."""
        there = self.known()
        while self._asked:
            left_s = max(until for _, until in self._asked.values()) - time.monotonic()
            ray.wait([*self._asked], num_returns=len(self._asked), timeout=max(left_s, 0.0))
            there = self.known()
        return there

    def known(self) -> tuple[Node, ...]:
        """Those that have answered, or had the time to. It waits for nothing."""
        alive = _alive()
        self._ask([raw["NodeID"] for raw in alive])
        self._hear()
        answers = self._answers
        return tuple(
            _node(raw, answers[raw["NodeID"]]) for raw in alive if raw["NodeID"] in answers
        )

    def _ask(self, node_ids: Sequence[str]) -> None:
        asked = {node_id for node_id, _ in self._asked.values()}
        for node_id in node_ids:
            if node_id not in self._answers and node_id not in asked:
                there = NodeAffinitySchedulingStrategy(node_id, soft=False)
                look = self._look.options(scheduling_strategy=there).remote(self._cache)
                self._asked[look] = node_id, time.monotonic() + LOOK_S

    def _hear(self) -> None:
        answered, silent = ray.wait([*self._asked], num_returns=len(self._asked), timeout=0)
        for look in answered:
            self._answers[self._asked.pop(look)[0]] = _answer(look)
        for look in silent:
            node_id, until = self._asked[look]
            if time.monotonic() >= until:
                del self._asked[look]
                self._answers[node_id] = f"it does not answer within {LOOK_S:.0f} s: {SEE_IT}"


SEE_IT = "see `ray status`, and Ray's logs on the node"


def rooms() -> dict[str, Room]:
    """What is free on each node, by id."""
    free: dict[str, dict[str, float]] = state.available_resources_per_node()  # type: ignore[no-untyped-call]
    return {node_id: _room(resources) for node_id, resources in free.items()}


def only(node_id: str) -> dict[str, str]:
    """The label selector of that node."""
    return {"ray.io/node-id": node_id}


def kill_worker_of(task: str) -> None:
    """Ray's own way would have to be heard by the worker."""
    kill: Any = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.kill_worker_of)
    kills = [kill.options(label_selector=only(raw["NodeID"])).remote(task) for raw in _alive()]
    ray.wait(kills, num_returns=len(kills), timeout=REACH_S)


def _alive() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _answer(look: Any) -> Answer:
    try:
        return _adapter.validate_json(ray.get(look))
    except (ray.exceptions.RayError, pydantic.ValidationError) as error:
        return f"it can't look at itself ({one_line(error)}): {SEE_IT}"


def _node(raw: dict[str, Any], answer: Answer) -> Node:
    said, room = raw["Labels"], _room(raw["Resources"])
    seen = None if isinstance(answer, str) else answer
    described = labels.described(said, room.devices, seen, catalogue.cards())
    vendor: Any = described.labels.get("vm.vendor", "cpu")
    return Node(
        id=raw["NodeID"],
        name=raw["NodeName"],
        address=raw["NodeManagerAddress"],
        vendor=vendor,
        card=described.labels.get("vm.card"),
        arch=described.labels.get("vm.arch"),
        devices=room.devices,
        cpus=room.cpus,
        memory_gib=room.memory_gib,
        labels=described.labels,
        driver=described.driver,
        device_memory_gib=described.device_memory_gib,
        builds=seen.builds if seen else (),
        troubles=described.troubles if seen else (str(answer), *described.troubles),
    )


def _room(resources: Mapping[str, float]) -> Room:
    return Room(
        devices=int(resources.get("GPU", 0)),
        cpus=resources.get("CPU", 0.0),
        memory_gib=resources.get("memory", 0.0) / 2**30,
    )
