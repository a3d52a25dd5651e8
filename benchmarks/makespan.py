"""
How near a cluster's schedule comes to the best there can be, played through without a cluster.

64 nodes of five cards and some without; the dispatcher is the one that runs use. Seconds of
emulated cells, and what was expected of them, are those of recorded runs; a real engine starts
in 40 to 280 s, and is expected to take what it takes give or take a fifth. A host starts in 10
to 22 s, which no lower bound counts. The last line is one JSON object.
"""

import heapq
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jobs.contract.terms import EngineMode
from orchestrator.running.cluster import Needs, Node
from orchestrator.running.dispatch import Dispatcher
from orchestrator.running.forecast import HOST_BOOT_S, Work
from orchestrator.running.plan import ANY_CPU
from orchestrator.running.waiting import Waiting

TIMELINES = Path(__file__).parents[1] / "tests" / "unit" / "timelines"
CARDS = {"h100": 16, "h200": 12, "b200": 8, "mi300x": 16, "mi355x": 8}
"""Card to number of nodes, each with 8 of them."""

OF_CPU = 4
DEVICES, CPUS, MEMORY_GIB = 8, 64, 1024.0
BUILDS = ("before", "after", "reverted", "nightly")
ENGINE_START_S = (40.0, 280.0)
ERROR = 0.2
GANGS = {1: 0.8, 2: 0.1, 4: 0.06, 8: 0.04}
"""Devices of a real cell, and how often."""

REAL, EMULATED = 6000, 30000


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    waiting: Waiting
    takes_s: float


@dataclass(kw_only=True, slots=True)
class Simulation:
    """Time passes from one end of a cell to the next."""

    nodes: tuple[Node, ...]
    cells: tuple[Cell, ...]
    now_s: float = 0.0
    busy: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds of devices and of cores, by card."""

    ended_s: dict[str, float] = field(default_factory=dict)
    """When each cell did."""

    def makespan_s(self) -> float:
        dispatcher = Dispatcher()
        takes_s = {cell.waiting.cell_id: cell.takes_s for cell in self.cells}
        for node in self.nodes:
            dispatcher.join(node)
            for build in BUILDS:
                dispatcher.open(node.id, build)
        for cell in self.cells:
            dispatcher.add(cell.waiting)
        up: dict[Hashable, float] = {}
        ends: list[tuple[float, str]] = []
        while dispatcher.waiting or ends:
            for waiting, (node, *_) in dispatcher.starts():
                ready = up.setdefault(
                    (node.id, waiting.work.host), self.now_s + waiting.work.boot_s
                )
                seconds = takes_s[waiting.cell_id]
                self.busy[_resource(waiting.needs)] += seconds * _amount(waiting.needs)
                heapq.heappush(ends, (max(ready, self.now_s) + seconds, waiting.cell_id))
            self.now_s, cell_id = heapq.heappop(ends)
            self.ended_s[cell_id] = self.now_s
            dispatcher.ended(cell_id)
        return self.now_s

    def lower_bound_s(self) -> float:
        """No schedule ends before its longest cell, or before all devices of a card are done."""
        work: defaultdict[str, float] = defaultdict(float)
        for cell in self.cells:
            work[_resource(cell.waiting.needs)] += cell.takes_s * _amount(cell.waiting.needs)
        bounds = [work[name] / there for name, there in self.capacity().items()]
        return max([*bounds, *(cell.takes_s for cell in self.cells)])

    def capacity(self) -> dict[str, float]:
        there: defaultdict[str, float] = defaultdict(float)
        for node in self.nodes:
            there["cores"] += node.cpus
            if node.card:
                there[node.card] += node.devices
        return dict(there)


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    chance = random.Random(seed)  # noqa: S311  it only has to come again
    nodes = tuple(_nodes())
    cells = (*_real(chance), *_emulated(chance))
    began = time.monotonic()
    simulation = Simulation(nodes=nodes, cells=cells)
    makespan_s = simulation.makespan_s()
    took_s = time.monotonic() - began
    bound_s = simulation.lower_bound_s()
    used = {
        name: round(simulation.busy[name] / there / makespan_s, 3)
        for name, there in simulation.capacity().items()
    }
    last = {
        "ratio": round(makespan_s / bound_s, 4),
        "utilisation": max(used.values()),
        "makespan_s": round(makespan_s, 1),
        "bound_s": round(bound_s, 1),
        "cells": len(cells),
        "nodes": len(nodes),
    }
    sys.stdout.write(
        f"{len(cells)} cells, {len(nodes)} nodes, seed {seed}: played through in {took_s:.1f} s\n"
        f"used of each: {', '.join(f'{name} {part:.0%}' for name, part in used.items())}\n"
        f"{json.dumps(last)}\n"
    )


def _nodes() -> Iterator[Node]:
    for card, count in {**CARDS, "": OF_CPU}.items():
        for number in range(count):
            labels = {**ANY_CPU, **({"vm.card": card} if card else {})}
            yield Node(
                id=f"{card or 'cpu'}-{number}",
                name=f"{card or 'cpu'}-{number}",
                address="",
                vendor="cpu" if not card else "amd" if card.startswith("mi") else "nvidia",
                card=card or None,
                arch=None,
                devices=DEVICES if card else 0,
                cpus=CPUS,
                memory_gib=MEMORY_GIB,
                labels=labels,
            )


def _real(chance: random.Random) -> Iterator[Cell]:
    """More of a card where there are more of them, as people who own a cluster ask."""
    low, high = ENGINE_START_S
    cards, weights = zip(*CARDS.items(), strict=True)
    for number in range(REAL):
        [card] = chance.choices(cards, weights)
        [devices] = chance.choices([*GANGS], [*GANGS.values()])
        takes_s = low * (high / low) ** chance.random()
        build = chance.choice(BUILDS)
        needs = Needs(labels={"vm.card": card}, devices=devices, memory_gib=32.0)
        work = Work(
            seconds=takes_s * chance.uniform(1 - ERROR, 1 + ERROR),
            host=("real", card, build),
            boot_s=HOST_BOOT_S[EngineMode.REAL],
        )
        waiting = Waiting(cell_id=f"real-{number}", needs=needs, work=work, build=build)
        yield Cell(waiting=waiting, takes_s=takes_s)


def _emulated(chance: random.Random) -> Iterator[Cell]:
    seen = [*_recorded()]
    for number in range(EMULATED):
        takes_s, expected_s = chance.choice(seen)
        build, card = chance.choice(BUILDS), chance.randrange(26)
        work = Work(
            seconds=expected_s,
            host=("emulated", card, build),
            boot_s=HOST_BOOT_S[EngineMode.EMULATED],
        )
        needs = Needs(labels=ANY_CPU, devices=0, memory_gib=1.0)
        waiting = Waiting(cell_id=f"emulated-{number}", needs=needs, work=work, build=build)
        yield Cell(waiting=waiting, takes_s=takes_s)


def _recorded() -> Iterator[tuple[float, float]]:
    """What a cell took, and what it had taken in the run before."""
    for file in sorted(TIMELINES.glob("*.json")):
        recorded = json.loads(file.read_text())
        if recorded["engine_mode"] == EngineMode.EMULATED:
            for _, _, seconds, earlier, _ in recorded["cells"]:
                if seconds is not None:
                    yield seconds, earlier or seconds


def _resource(needs: Needs) -> str:
    return needs.labels["vm.card"] if needs.devices else "cores"


def _amount(needs: Needs) -> int:
    return needs.devices or needs.cpus


if __name__ == "__main__":
    main()
