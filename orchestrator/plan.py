"""Which cells this cluster can run, in which order, and why not the others. Touches no cluster."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jobs.contract import PARALLEL_SIZES, EngineMode
from orchestrator.asking import environment
from orchestrator.cells import Cell
from orchestrator.cluster import Needs, Node

ANY_CPU = {"vm.cpu": "yes"}
"""Every node carries this label: the CPU build and emulated engines run on all of them."""

MEMORY_OF_AN_EMULATED_CELL_GIB = 1.0
"""Measured: a host has 650 MiB, and a cell 150 MiB more of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    runnable: tuple[Cell, ...]
    """In the order in which to start them."""

    unplaceable: dict[str, str]
    """Cell id to the reason that no node can take it."""

    hosts: dict[str, tuple[str, ...]]
    """Cell id to the names of the nodes that could take it."""


def make_plan(cells: Iterable[Cell], nodes: Sequence[Node]) -> Plan:
    runnable: list[Cell] = []
    unplaceable: dict[str, str] = {}
    hosts: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        fitting = [node for node in nodes if _fits(node, needs(cell))]
        if cell.engine_mode not in cell.hardware.engine_modes:
            modes = ", ".join(cell.hardware.engine_modes)
            unplaceable[cell.id] = f"this hardware is described for engine_mode {modes} only"
        elif cell.engine_mode is EngineMode.EMULATED and (parallel := _parallel(cell)):
            unplaceable[cell.id] = (
                f"emulated engines have one device only, and it asks for {parallel}"
            )
        elif fitting:
            runnable.append(cell)
            hosts[cell.id] = tuple(node.name for node in fitting)
        else:
            unplaceable[cell.id] = _obstacle(cell, nodes)
    at_once = max(1, int(sum(node.cpus for node in nodes)))
    ordered = tuple(_by_host(runnable, at_once))
    return Plan(runnable=ordered, unplaceable=unplaceable, hosts=hosts)


def _parallel(cell: Cell) -> str | None:
    """What makes an engine of several devices, if anything does."""
    if cell.model.devices > 1:
        return f"{cell.model.devices} devices"
    arguments = {**cell.model.engine_args, **cell.backend.engine_args}
    sizes = [(name, arguments.get(name)) for name in PARALLEL_SIZES]
    return next((f"{name}={size}" for name, size in sizes if size not in (None, 1)), None)


def needs(cell: Cell) -> Needs:
    hardware = cell.hardware
    if cell.engine_mode is EngineMode.EMULATED:
        return Needs(labels=ANY_CPU, devices=0, memory_gib=MEMORY_OF_AN_EMULATED_CELL_GIB)
    if hardware.vendor == "cpu":
        return Needs(labels=ANY_CPU, devices=0, memory_gib=cell.model.memory_gib)
    labels = {"vm.vendor": hardware.vendor, "vm.card": hardware.card, "vm.arch": hardware.arch}
    return Needs(
        labels={name: value for name, value in labels.items() if value is not None},
        devices=cell.model.devices,
        memory_gib=cell.model.memory_gib,
    )


def _by_host(cells: Iterable[Cell], at_once: int) -> Iterator[Cell]:
    """
    Cells that share a host one after the other, so that it starts once and can go early.

    As many groups go side by side as there are cells at once: a host needs 20 s on one
    core to start, and cells that all waited for the same one would leave the others idle.
    """
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_host(cell), []).append(cell)
    waiting = iter(groups.values())
    while batch := [*itertools.islice(waiting, at_once)]:
        for row in itertools.zip_longest(*batch):
            yield from (cell for cell in row if cell is not None)


def _host(cell: Cell) -> tuple[object, ...]:
    """What the processes that can fork this cell have in common."""
    of_engine = (cell.build.name, cell.engine_mode, cell.isolation)
    return (*of_engine, cell.axis("hardware"), *sorted(environment(cell).items()))


def _fits(node: Node, wanted: Needs) -> bool:
    return (
        _has_labels(node, wanted)
        and node.devices >= wanted.devices
        and node.memory_gib >= wanted.memory_gib
    )


def _has_labels(node: Node, wanted: Needs) -> bool:
    return all(node.labels.get(name) == value for name, value in wanted.labels.items())


def _obstacle(cell: Cell, nodes: Sequence[Node]) -> str:
    """The reason, with the nearest miss where there is one."""
    wanted = needs(cell)
    card = cell.hardware.card or cell.axis("hardware")
    alike = [node for node in nodes if _has_labels(node, wanted)]
    if not alike:
        there = ", ".join(sorted({node.card or "cpu only" for node in nodes})) or "no node at all"
        return f"no node with {card} (the cluster has: {there})"
    best = max(alike, key=lambda node: (node.devices, node.memory_gib))
    if best.devices < wanted.devices:
        return f"needs {wanted.devices} {card} on one node, {best.name} has {best.devices}"
    return (
        f"needs {wanted.memory_gib:g} GiB of memory on one node, "
        f"{best.name} has {best.memory_gib:.1f}"
    )
