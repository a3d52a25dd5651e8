"""
How long it takes to plan 100,000 cells for a cluster of 64 mixed nodes, and in how much memory.

From checked configurations to who runs what: expand with constraints, expectations and deadlines,
what each cell needs, where it fits, what it costs, and in which order a budget would take them.
Nothing is started. The last line is one JSON object; its seconds are the whole of it.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from benchmarks.makespan import CARDS, CPUS, DEVICES, MEMORY_GIB, OF_CPU
from jobs.contract.terms import Check, EngineMode, Isolation, Phase
from orchestrator.asked.config import (
    Asked,
    Backend,
    Budget,
    Build,
    ClusterChoice,
    Config,
    Constraint,
    Expectation,
    ExpectationRule,
    Hardware,
    Model,
    Suite,
    Vendor,
)
from orchestrator.asked.policies import Gate
from orchestrator.kept.history import History
from orchestrator.run import cells_of
from orchestrator.running import budget
from orchestrator.running.cluster import Node
from orchestrator.running.plan import ANY_CPU, make_plan

ARCHES = {
    "h100": "sm_90",
    "h200": "sm_90",
    "b200": "sm_100",
    "mi300x": "gfx942",
    "mi355x": "gfx950",
}
MODELS, BACKENDS, BUILDS = 100, 40, 6
"""With the cards 120,000 combinations, of which constraints take a sixth."""

Result = TypeVar("Result")


class Stopwatch:
    """Says what each part took, by the clock and of a core."""

    def __init__(self) -> None:
        self.seconds = self.cpu_s = 0.0

    def of(self, part: str, work: Callable[[], Result]) -> Result:
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        took_s, used_s = time.perf_counter() - wall, time.process_time() - cpu
        self.seconds += took_s
        self.cpu_s += used_s
        sys.stdout.write(f"{part:10} {took_s:5.2f} s, {used_s:5.2f} of a core\n")
        return result


def main() -> None:
    config, nodes, history = _config(), tuple(_nodes()), History()
    watch = Stopwatch()
    cells = watch.of("expand", lambda: cells_of([config]))
    plan = watch.of("place", lambda: make_plan(cells, nodes, history.memory_gib(cells)))
    work = watch.of("cost", lambda: history.work(plan.runnable))
    limits = Budget(max_gpu_hours=20.0)
    fitted = watch.of("budget", lambda: budget.within(plan, work, limits, nodes))
    last = {
        "cells": len(cells),
        "seconds": round(watch.seconds, 2),
        "cpu_s": round(watch.cpu_s, 2),
        "mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "unplaceable": len(plan.unplaceable),
        "left_out": len(fitted.left_out),
    }
    sys.stdout.write(f"{json.dumps(last)}\n")


def _config() -> Config:
    return Config(
        hardware={card: _hardware(card) for card in CARDS},
        model=dict(_models()),
        backend=dict(_backends()),
        build={f"v0_{number}": Build(release=f"0.{number}.0") for number in range(BUILDS)},
        suite=_suite(),
        gate=Gate(),
        engine_mode=EngineMode.REAL,
        isolation=Isolation.WARM,
        deadline_s=None,
        deadlines={Phase.LOAD: 900.0},
        wait_s=None,
        quiet_s=None,
        attempts=2,
        secrets=(),
        budget=Budget(),
        cluster=ClusterChoice(),
        evidence=None,
        runs="runs",
        resume=True,
        cache="cache",
    )


def _suite() -> Suite:
    """As release suites are: some rules for all, many for single models."""
    rules = [ExpectationRule(cells="*", expect=Expectation(outcome=("runs", "refused")))]
    rules += [
        ExpectationRule(cells=f"*/model{number}/backend1*/*", expect=Expectation())
        for number in range(20)
    ]
    none = "none/none/none/none"
    return Suite(
        name="benchmark",
        select=("h*/*", "b200/*", "*/*/*/v0_*"),
        exclude=("*/model9?/backend3?/v0_0",),
        constraints=(
            Constraint(when="mi*/model?/*", only="*/*/backend?/*", why="too many"),
            Constraint(when="*/*/backend0/*", only=none, why="no card can"),
            Constraint(when="*/model?[02468]/*/v0_1", only="*/*/backend[1-9]*/*", why="old"),
            Constraint(when="*/*/*/v0_0", only="h*/*", why="before the others"),
        ),
        check=Check.INIT,
        expectations=tuple(rules),
    )


def _hardware(card: str) -> Hardware:
    return Hardware(vendor=_vendor(card), card=card, arch=ARCHES[card])


def _vendor(card: str) -> Vendor:
    return "amd" if card.startswith("mi") else "nvidia"


def _models() -> Iterator[tuple[str, Model]]:
    """One in five needs several devices, and one of those more than a node has."""
    for number in range(MODELS):
        devices = 16 if number == 0 else 2 ** (number % 4) if number % 5 == 0 else 1
        yield (
            f"model{number}",
            Model(
                path=f"org/model-{number}",
                devices=devices,
                moe=number % 3 == 0,
                speculative={"method": "eagle3", "model": "org/draft"} if number % 2 else None,
                engine_args={"max_model_len": 4096},
                memory_gib=4.0 + number % 7,
            ),
        )


def _backends() -> Iterator[tuple[str, Backend]]:
    for number in range(BACKENDS):
        target = Asked(attention_backend=f"BACKEND_{number}")
        yield f"backend{number}", Backend(target=target, env={"VLLM_CHOICE": str(number % 3)})


def _nodes() -> Iterator[Node]:
    for card, count in {**CARDS, "": OF_CPU}.items():
        labels = (
            {"vm.vendor": _vendor(card), "vm.card": card, "vm.arch": ARCHES[card]} if card else {}
        )
        for number in range(count):
            yield Node(
                id=f"{card or 'cpu'}-{number}",
                name=f"{card or 'cpu'}-{number}",
                address="",
                vendor=_vendor(card) if card else "cpu",
                card=card or None,
                arch=ARCHES.get(card),
                devices=DEVICES if card else 0,
                cpus=CPUS,
                memory_gib=MEMORY_GIB,
                labels={**ANY_CPU, **labels},
            )


if __name__ == "__main__":
    main()
