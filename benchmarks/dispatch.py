"""
`python -m benchmarks.dispatch [CELLS]`: what a cell costs beside the Ray task that it is.

On one cluster of three raylets, in turn: so many raw Ray tasks that do nothing, and a whole run
of as many cells that do nothing either: planned, placed, judged, recorded, shown. The last line
is one JSON object: `ray_s`, `ours_s`, `ratio`, and `driver_mib`, by which the driver grew from
half-way to the end.
"""

import dataclasses
import io
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster as Raylets
from rich.console import Console

from jobs.contract.asked import CellRequest
from jobs.contract.terms import to_json
from jobs.node.builds.provision import digest_of
from orchestrator.asked.compose import compose
from orchestrator.asked.config import ClusterChoice, Config
from orchestrator.concluded.record import Record
from orchestrator.run import validate
from orchestrator.running.cluster import Builds, Wanted
from orchestrator.running.on_ray.cells import Cells
from orchestrator.running.on_ray.cluster import RayCluster
from orchestrator.running.progress import ConsoleProgress
from tests.builders import a_build, a_report, an_attempt

CELLS = 10_000
"""A multiple of BACKENDS."""

BACKENDS = 100
RAYLETS = 3
CPUS = 2
ROUNDS = 2
ANSWER = to_json(an_attempt(a_report()))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CELLS
    os.environ["RAY_AUTH_MODE"] = "disabled"
    with _raylets() as address, tempfile.TemporaryDirectory() as folder:
        _raw(address, CPUS * RAYLETS * 4)  # every worker has started
        ray_s = ours_s = grown_mib = 0.0
        for number in range(ROUNDS):
            ray_s += _raw(address, count)
            took_s, grown = _ours(address, count, Path(folder, str(number)))
            ours_s, grown_mib = ours_s + took_s, max(grown_mib, grown)
            sys.stdout.write(f"round {number + 1}: {ray_s:.1f} s and {ours_s:.1f} s so far\n")
    last = {
        "ray_s": round(ray_s, 2),
        "ours_s": round(ours_s, 2),
        "ratio": round(ours_s / ray_s, 3),
        "cells": count,
        "driver_mib": round(grown_mib, 1),
    }
    sys.stdout.write(f"{json.dumps(last)}\n")


@contextmanager
def _raylets() -> Iterator[str]:
    raylets: Any = Raylets(initialize_head=False)
    for _ in range(RAYLETS):
        raylets.add_node(num_cpus=CPUS, labels={"vm.cpu": "yes"}, include_dashboard=False)
    try:
        yield raylets.address
    finally:
        raylets.shutdown()


def _raw(address: str, count: int) -> float:
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    task: Any = ray.remote(max_retries=0, num_cpus=1)(lambda: ANSWER)
    began = time.monotonic()
    ray.get([task.remote() for _ in range(count)])
    took_s = time.monotonic() - began
    ray.shutdown()
    return took_s


def _ours(address: str, count: int, folder: Path) -> tuple[float, float]:
    configs = [_config(count, address, folder)]
    progress = _Timed(Console(file=io.StringIO()), count)
    run = validate(configs, [], NothingDone, progress)
    verdicts = [record.verdict for record in run.records]
    assert verdicts == ["passed"] * count
    return progress.took_s(), progress.grown_mib


def _config(count: int, address: str, folder: Path) -> Config:
    """As many cells as asked for: each of some models with each of some backends."""
    words = ["hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]", "resume=false"]
    [config] = compose([*words, f"cluster.address={address}", f"runs={folder}"])
    model = dataclasses.replace(config.model["llama"], memory_gib=0.1)
    models = count // BACKENDS
    return dataclasses.replace(
        config,
        model={f"llama{number}": model for number in range(models)},
        backend={f"auto{number}": config.backend["auto"] for number in range(BACKENDS)},
    )


class _Timed(ConsoleProgress):
    """From when cells are planned to when the last one is recorded."""

    def __init__(self, console: Console, count: int) -> None:
        super().__init__(console)
        self._count, self._seen = count, 0
        self._half_way_mib: float | None = None

    def planned(self, work: Mapping[str, Any], **more: int) -> None:
        super().planned(work, **more)
        self._began = time.monotonic()

    def ended(self, *records: Record) -> None:
        super().ended(*records)
        self._seen += len(records)
        self._ended = time.monotonic()
        if self._seen >= self._count // 2:
            self._mib = _mib()
            self._half_way_mib = self._half_way_mib or self._mib

    @property
    def grown_mib(self) -> float:
        assert self._half_way_mib is not None
        return self._mib - self._half_way_mib

    def took_s(self) -> float:
        return self._ended - self._began


class NothingDone(RayCluster):
    """Every build is there already, and every cell passes at once."""

    def __init__(self, choice: ClusterChoice, say: Callable[[str], None]) -> None:
        super().__init__(choice, say)
        self._cells = Cells(_nothing_done)

    def provision(self, wanted: Sequence[Wanted], cache: str, say: Callable[[str], None]) -> Builds:
        del cache, say
        ready = {
            (each.spec.engine_mode, each.spec.name): a_build(
                each.spec.name, digest=digest_of(each.spec)
            )
            for each in wanted
        }
        return Builds(ready={node.id: ready for node in self.nodes()})


def _nothing_done(request: CellRequest) -> tuple[str, dict[str, bytes]]:
    del request
    return ANSWER, {}


def _mib() -> float:
    return float(psutil.Process().memory_info().rss / 2**20)


if __name__ == "__main__":
    main()
