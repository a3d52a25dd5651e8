"""What the cluster has: its nodes, their accelerators, and what is wrong with them."""

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

from orchestrator.asked import catalogue
from orchestrator.asked.conf_files import nearest
from orchestrator.asked.config import ClusterChoice
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS
from orchestrator.running.cluster import Node, Room, this_machine

AUTHENTICATION = {
    "on": "authentication: on",
    "off": (
        "warning: authentication is off, so whoever reaches this cluster can run anything on it: "
        "start it with RAY_AUTH_MODE=token and a token of its own, or keep its ports closed"
    ),
    "loopback": "authentication: off, and nobody but this machine reaches the cluster",
    "unknown": (
        "authentication: not known from here; ask for /api/version of the dashboard without a "
        "token, which answers 401 where it is on"
    ),
    "local": "authentication: this machine alone, where a run starts Ray for itself",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    nodes: tuple[Node, ...]
    free: Mapping[str, Room]
    """By node id."""

    authentication: Literal["on", "off", "loopback", "unknown", "local"]


def parser() -> Parser:
    words = Parser(
        "nodes",
        __doc__,
        {
            "nodes": "this machine, as a run would use it",
            "nodes --address 10.0.0.1:6379": "a Ray cluster, by the address of its head",
        },
    )
    words.add_argument(
        "--address", metavar="ADDRESS", help="a running Ray cluster; without it, this machine"
    )
    words.add_argument("--format", choices=("terminal", "json"), default="terminal")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    found = _checked(_inventory(ClusterChoice(address=chosen.address)))
    if chosen.format == "json":
        sys.stdout.write(f"{json.dumps(_document(found), indent=1)}\n")
    else:
        _show(found)
    return SHIPS


def nodes_of(choice: ClusterChoice) -> tuple[Node, ...]:
    """The nodes of a running cluster, or this machine as the one that a run would start."""
    return _inventory(choice).nodes


def _inventory(choice: ClusterChoice) -> Inventory:
    if choice.address is None:
        here = this_machine()
        room = Room(devices=here.devices, cpus=here.cpus, memory_gib=here.memory_gib)
        return Inventory(nodes=(here,), free={here.id: room}, authentication="local")
    from orchestrator.running.on_ray import nodes
    from orchestrator.running.on_ray.cluster import RayCluster

    cluster = RayCluster(choice, screen().print)
    try:
        there = sorted(cluster.nodes(), key=lambda node: node.name)
        return Inventory(nodes=tuple(there), free=nodes.rooms(), authentication=cluster.door)
    finally:
        cluster.close()


def _checked(found: Inventory) -> Inventory:
    """A card that conf/hardware does not know is one that no cell asks for."""
    cards = [card.card for card in catalogue.cards() if card.card]
    return dataclasses.replace(
        found,
        nodes=tuple(
            dataclasses.replace(node, troubles=(*node.troubles, *_unknown_card(node, cards)))
            for node in found.nodes
        ),
    )


def _unknown_card(node: Node, cards: Sequence[str]) -> Iterator[str]:
    if node.card is not None and node.card not in cards:
        likely = nearest(node.card, cards)
        yield f'no file of conf/hardware has its card "{node.card}": no cell asks for it.{likely}'


def _show(found: Inventory) -> None:
    console = screen()
    grid = Table(
        *("node", "vendor", "card", "arch", "driver"),
        *("devices free", "CPUs free", "GiB free", "builds ready"),
        box=None,
    )
    for node in found.nodes:
        grid.add_row(*_fields(node, found.free.get(node.id)))
    console.print(grid)
    for node in found.nodes:
        for trouble in node.troubles:
            console.print(f"{node.name}: {trouble}", style="yellow", markup=False, highlight=False)
    style = "bold red" if found.authentication == "off" else None
    console.print(AUTHENTICATION[found.authentication], style=style, markup=False, highlight=False)


def _fields(node: Node, free: Room | None) -> list[str]:
    size = f" ({node.device_memory_gib:.0f} GiB)" if node.device_memory_gib else ""
    devices, cpus, memory = (free.devices, free.cpus, free.memory_gib) if free else ("?", "?", "?")
    return [
        node.name,
        node.vendor,
        f"{node.card or '-'}{size}",
        node.arch or "-",
        node.driver or "-",
        f"{devices}/{node.devices}",
        f"{_short(cpus)}/{_short(node.cpus)}",
        f"{_short(memory)}/{_short(node.memory_gib)}",
        ", ".join(node.builds) or "-",
    ]


def _short(amount: float | str) -> str:
    return amount if isinstance(amount, str) else f"{amount:.3g}"


def _document(found: Inventory) -> dict[str, object]:
    nodes = []
    for node in found.nodes:
        free = found.free.get(node.id)
        nodes.append(dataclasses.asdict(node) | {"free": free and dataclasses.asdict(free)})
    return {"authentication": found.authentication, "nodes": nodes}
