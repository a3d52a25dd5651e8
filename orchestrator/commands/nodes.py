"""What the cluster has: its nodes, their accelerators, and what is wrong with them."""

import argparse
from collections.abc import Sequence

from rich.table import Table

from orchestrator.asked.config import ClusterChoice
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS
from orchestrator.running.cluster import Node, this_machine


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("vllm-matrix nodes", description=__doc__)
    parser.add_argument("--address", help="a running Ray cluster; without it, this machine")
    chosen = parser.parse_args(words)
    grid = Table(
        "node", "vendor", "card", "arch", "devices", "CPUs", "GiB", "labels", "troubles", box=None
    )
    for node in nodes_of(ClusterChoice(address=chosen.address)):
        grid.add_row(*_fields(node))
    screen().print(grid)
    return SHIPS


def nodes_of(choice: ClusterChoice) -> tuple[Node, ...]:
    """The nodes of a running cluster, or this machine as the one that a run would start."""
    if choice.address is None:
        return (this_machine(),)
    from orchestrator.running.on_ray.cluster import RayCluster

    cluster = RayCluster(choice, screen().print)
    try:
        return cluster.nodes()
    finally:
        cluster.close()


def _fields(node: Node) -> list[str]:
    labels = {name: value for name, value in node.labels.items() if name.startswith("vm.")}
    return [
        node.name,
        node.vendor,
        node.card or "-",
        node.arch or "-",
        str(node.devices),
        f"{node.cpus:g}",
        f"{node.memory_gib:.0f}",
        " ".join(f"{name}={value}" for name, value in labels.items()),
        "; ".join(node.troubles) or "-",
    ]
