"""The nodes that Ray has, and what is done on each of them."""

from typing import Any

import ray

from jobs.node import ray_tasks
from orchestrator.running.cluster import Node

REACH_S = 5.0


def alive() -> tuple[Node, ...]:
    return tuple(_node(node) for node in _known() if node["Alive"])


def only(node: Node) -> dict[str, str]:
    """The label selector of that node."""
    return {"ray.io/node-id": node.id}


def kill_worker_of(task: str) -> None:
    """Ray's own way would have to be heard by the worker."""
    kill: Any = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.kill_worker_of)
    kills = [kill.options(label_selector=only(node)).remote(task) for node in alive()]
    ray.wait(kills, num_returns=len(kills), timeout=REACH_S)


def _known() -> list[dict[str, Any]]:
    return list(ray.nodes())  # type: ignore[no-untyped-call]


def _node(raw: dict[str, Any]) -> Node:
    labels: dict[str, str] = raw["Labels"]
    resources: dict[str, float] = raw["Resources"]
    vendor: Any = labels.get("vm.vendor", "cpu")
    unlabelled = "it carries none of our labels (vm.cpu, vm.vendor, vm.card, vm.arch)"
    return Node(
        id=raw["NodeID"],
        name=raw["NodeName"],
        address=raw["NodeManagerAddress"],
        vendor=vendor,
        card=labels.get("vm.card"),
        arch=labels.get("vm.arch"),
        devices=int(resources.get("GPU", 0)),
        cpus=resources.get("CPU", 0.0),
        memory_gib=resources.get("memory", 0.0) / 2**30,
        labels=labels,
        troubles=() if "vm.cpu" in labels else (unlabelled,),
    )
