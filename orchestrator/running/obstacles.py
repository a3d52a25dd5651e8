"""Why no node of a cluster can take a cell. Pure."""

from collections.abc import Sequence

from orchestrator.asked.cells import Cell
from orchestrator.running.cluster import Needs, Node


def obstacle(cell: Cell, wanted: Needs, nodes: Sequence[Node]) -> str:
    """The reason, with the nearest miss where there is one."""
    card = cell.hardware.card or cell.axis("hardware")
    alike = [node for node in nodes if node.carries(wanted.labels)]
    if not alike:
        there = ", ".join(sorted({node.card or "cpu only" for node in nodes})) or "no node at all"
        return f"no node with {card} (the cluster has: {there})"
    if fitting := sum(node.fits(wanted) for node in alike):
        return f"{_needed(card, wanted)}, there {'are' if fitting > 1 else 'is'} {fitting}"
    best = max(alike, key=lambda node: (node.devices, node.cpus, node.memory_gib))
    if best.devices < wanted.devices:
        return f"needs {wanted.devices} {card} on one node, {best.name} has {best.devices}"
    if best.cpus < wanted.cpus:
        return f"needs {wanted.cpus} CPUs on one node, {best.name} has {best.cpus:g}"
    return (
        f"needs {wanted.memory_gib:g} GiB of memory on one node, "
        f"{best.name} has {best.memory_gib:.1f}"
    )


def _needed(card: str, wanted: Needs) -> str:
    share = f"{wanted.devices} x {card}" if wanted.devices else _counted(wanted.cpus, "CPU")
    return f"needs {wanted.nodes} nodes with {share} each"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
