"""Which cells this cluster can run, in which order, and why not the others. Touches no cluster."""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jobs.contract.emulation import PARALLEL_SIZES
from jobs.contract.terms import EngineMode, Phase
from jobs.node.environment import waits
from orchestrator.asked.cell_requests import environment
from orchestrator.asked.cells import Cell
from orchestrator.running import gangs
from orchestrator.running.cluster import BuildKey, Needs, Node, Wanted
from orchestrator.running.obstacles import obstacle

NOTHING_SEEN: Mapping[str, float] = MappingProxyType({})

ANY_CPU = {"vm.cpu": "yes"}
"""Every node carries this label: the CPU build and emulated engines run on all of them."""

MEMORY_OF_HOST_GIB = {EngineMode.REAL: 0.6, EngineMode.EMULATED: 0.65}
"""
Measured, of a host that has imported vLLM 0.32.0. A cell that runs has one, at most. Hosts that
wait for their next cell fit into what Ray sets aside for objects, of which there are hardly any.
"""

MEMORY_GRAIN_GIB = 0.25

MEMORY_OF_AN_EMULATED_CELL_GIB = 1.0
"""Until it was measured, with its host: what the largest models take, and no weight is loaded."""

MEMORY_OF_A_RANK_GIB = 0.375
"""
Of several: each is a process of its own, which was seen to take 0.22 GiB, and each engine of data
parallelism has one of 0.2 GiB besides.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    runnable: tuple[Cell, ...]
    """In the order in which to start them."""

    unplaceable: dict[str, str]
    """Cell id to the reason that no node can take it."""

    missing: dict[str, str] = field(default_factory=dict)
    """Cell id to what it lacks, of those among the runnable that wait for a node to join."""

    hosts: dict[str, tuple[str, ...]]
    """Cell id to the names of the nodes that could take it."""

    needs: dict[str, Needs] = field(default_factory=dict)
    """By cell id, of the runnable."""

    at_once: int = 1
    """How many cells the cores and the memory of all nodes carry, about."""


def make_plan(
    cells: Iterable[Cell],
    nodes: Sequence[Node],
    memory_gib: Mapping[str, float] = MappingProxyType({}),
    *,
    wait: bool = False,
) -> Plan:
    """
    *memory_gib* is what cells were seen to take, by their ids. With *wait*, a cell that only
    lacks a node is runnable: one may join.
    """
    runnable: list[Cell] = []
    unplaceable: dict[str, str] = {}
    hosts: dict[str, tuple[str, ...]] = {}
    wanted: dict[str, Needs] = {}
    missing: dict[str, str] = {}
    names_fitting = _fitting(nodes)
    for cell in cells:
        need = needs(cell, memory_gib.get(cell.id))
        fitting = names_fitting(need)
        if never := _impossible(cell):
            unplaceable[cell.id] = never
        elif fitting or wait:
            runnable.append(cell)
            hosts[cell.id], wanted[cell.id] = fitting, need
            if not fitting:
                missing[cell.id] = obstacle(cell, need, nodes)
        else:
            unplaceable[cell.id] = obstacle(cell, need, nodes)
    at_once = _at_once(wanted.values(), nodes)
    ordered = tuple(_by_host(runnable, at_once))
    return Plan(
        runnable=ordered,
        unplaceable=unplaceable,
        missing=missing,
        hosts=hosts,
        needs=wanted,
        at_once=at_once,
    )


def _fitting(nodes: Sequence[Node]) -> Callable[[Needs], tuple[str, ...]]:
    """The names of the nodes that fit, if enough do; what cells need alike is looked for once."""
    known: dict[Hashable, tuple[str, ...]] = {}

    def names(need: Needs) -> tuple[str, ...]:
        kind = need.kind, need.memory_gib
        if kind not in known:
            fitting = [node for node in nodes if node.fits(need)]
            together = gangs.shared(fitting, need)
            known[kind] = tuple(node.name for node in fitting if node.id in together)
        return known[kind]

    return names


def build_key(cell: Cell) -> BuildKey:
    return cell.engine_mode, cell.build.name


def wanted(plan: Plan) -> tuple[Wanted, ...]:
    """The builds of the runnable, each once."""
    cells: dict[BuildKey, list[Cell]] = {}
    for cell in plan.runnable:
        cells.setdefault(build_key(cell), []).append(cell)
    return tuple(
        Wanted(
            spec=alike[0].build,
            deadline_s=max(cell.deadlines.phases_s[Phase.PROVISION] for cell in alike),
            needs=_differing(plan.needs[cell.id] for cell in alike),
        )
        for alike in cells.values()
    )


def _differing(all_needs: Iterable[Needs]) -> tuple[Needs, ...]:
    found: dict[Hashable, Needs] = {}
    for each in all_needs:
        found.setdefault(each.kind, each)
    return tuple(found.values())


def needs(cell: Cell, measured_gib: float | None = None) -> Needs:
    """*measured_gib* is what the cell was seen to take beside its host."""
    return Needs(
        labels=_labels(cell),
        devices=0 if _is_of_cpu(cell) else cell.model.devices // cell.nodes,
        cpus=_workers_of_a_node(cell) if _is_of_cpu(cell) else 1,
        memory_gib=_memory_gib(cell, measured_gib),
        nodes=cell.nodes,
        alone=cell.speed is not None,
    )


def host(cell: Cell) -> tuple[object, ...]:
    """What the processes that can fork this cell have in common."""
    of_engine = (cell.build.name, cell.engine_mode, cell.isolation)
    variables = {name: value for name, value in environment(cell).items() if not waits(name)}
    return (*of_engine, cell.axis("hardware"), *sorted(variables.items()))


def _impossible(cell: Cell) -> str | None:
    """Why no node whatever could run it."""
    if cell.engine_mode not in cell.hardware.engine_modes:
        modes = ", ".join(cell.hardware.engine_modes)
        return f"this hardware is described for engine_mode {modes} only"
    if cell.engine_mode is EngineMode.EMULATED and _workers(cell) > cell.model.devices:
        sizes = ", ".join(f"{name}={size}" for name, size in _sizes(cell).items() if size)
        return f"{sizes} takes {_workers(cell)} devices; say devices: {_workers(cell)} in the model"
    return None


def _sizes(cell: Cell) -> dict[str, Any]:
    arguments = {**cell.model.engine_args, **cell.backend.engine_args}
    return {name: arguments.get(name) for name in PARALLEL_SIZES}


def _workers(cell: Cell) -> int:
    """Processes that work at the same time, each on a core."""
    asked = [size for size in _sizes(cell).values() if isinstance(size, int) and size > 0]
    return max(cell.model.devices, math.prod(asked))


def _workers_of_a_node(cell: Cell) -> int:
    return math.ceil(_workers(cell) / cell.nodes)


def _is_of_cpu(cell: Cell) -> bool:
    return cell.engine_mode is EngineMode.EMULATED or cell.hardware.vendor == "cpu"


def _memory_gib(cell: Cell, measured_gib: float | None) -> float:
    described = _described_gib(cell)
    if measured_gib is None:
        return described
    measured = _in_grains(measured_gib + MEMORY_OF_HOST_GIB[cell.engine_mode])
    # Looks at a cell may miss ranks, which live for a second or two.
    return max(described, measured) if _workers(cell) > 1 else measured


def _described_gib(cell: Cell) -> float:
    if cell.engine_mode is EngineMode.REAL:
        return cell.model.memory_gib
    workers = _workers_of_a_node(cell)
    return MEMORY_OF_AN_EMULATED_CELL_GIB + (MEMORY_OF_A_RANK_GIB * workers if workers > 1 else 0)


def _in_grains(gib: float) -> float:
    """Ray gives a worker from one task to the next only if they ask for the very same."""
    return math.ceil(gib / MEMORY_GRAIN_GIB) * MEMORY_GRAIN_GIB


def _labels(cell: Cell) -> dict[str, str]:
    if _is_of_cpu(cell):
        return ANY_CPU
    hardware = cell.hardware
    labels = {"vm.vendor": hardware.vendor, "vm.card": hardware.card, "vm.arch": hardware.arch}
    return {name: value for name, value in labels.items() if value is not None}


def _at_once(wanted: Iterable[Needs], nodes: Sequence[Node]) -> int:
    """By the cores and the memory of the largest: Ray counts exactly, this is to plan with."""
    wanted = [*wanted]
    if any(need.alone for need in wanted):
        return max(1, len(nodes))
    largest_gib = max((need.memory_gib for need in wanted), default=1.0)
    cores = max((need.cpus for need in wanted), default=1)
    spanned = min((need.nodes for need in wanted), default=1)
    carried = (min(node.cpus // cores, node.memory_gib // largest_gib) for node in nodes)
    return max(1, int(sum(carried)) // spanned)


def _by_host(cells: Iterable[Cell], at_once: int) -> Iterator[Cell]:
    """
    Cells that share a host one after the other, so that it starts once and can go early.

    As many groups go side by side as there are cells at once: a host needs 20 s on one
    core to start, and cells that all waited for the same one would leave the others idle.
    """
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(host(cell), []).append(cell)
    waiting = iter(groups.values())
    while batch := [*itertools.islice(waiting, at_once)]:
        for row in itertools.zip_longest(*batch):
            yield from (cell for cell in row if cell is not None)
