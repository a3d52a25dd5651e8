"""
One suite by three ways onto one cluster of five nodes, one of which dies: is it the same matrix?

Everything is real but the devices: raylets, Ray's scheduler and its Jobs API, and vLLM's own
engine core under emulated cards. `scripts/cluster-demo` starts it; it answers 0 if the three
matrices are one, and nothing is left.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import FIVE, NodeKind

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

SUITE = (
    "suite=releases",
    "hardware=[h100,mi300x]",
    "model=[llama31_8b,llama31_8b_eagle3]",
    "backend=[auto,triton_attn,draft_triton_attn]",
    "build=[v0_28_gpu,v0_32_gpu]",
)
"""What changed between two releases, on a card of each vendor."""

OF_THE_TRY = {"phases", "seconds", "attempts", "kept_from", "placement", "log"}
"""What a cell's row says of how it was run, and not of what was seen."""

ENOUGH = 4
"""So many cells have ended when the node is killed."""

POLL_S = 0.2

Words = Callable[[MixedCluster, Path], list[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    name: str
    words: Words
    loses_a_node: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Trip:
    """What became of a way."""

    way: Way
    code: int
    seconds: float
    document: dict[str, Any] = field(default_factory=dict)

    @property
    def verdicts(self) -> str:
        passed = sum(cell["verdict"] == "passed" for cell in self.document["cells"])
        again = sum(cell["attempts"] > 1 for cell in self.document["cells"])
        nodes = {cell["placement"]["labels"]["ray.io/node-id"] for cell in _placed(self.document)}
        return (
            f"{self.way.name}: {self.seconds:.0f} s, exit code {self.code}, "
            f"{passed} of {len(self.document['cells'])} cells passed on {len(nodes)} nodes, "
            f"{again} tried again, matrix {self.digest}"
        )

    @property
    def digest(self) -> str:
        """The same for the same answer."""
        return hashlib.sha256(json.dumps(self.answer(), sort_keys=True).encode()).hexdigest()[:12]

    def answer(self) -> dict[str, Any]:
        """Less what differs from one try to the next."""
        cells = [
            {name: value for name, value in cell.items() if name not in OF_THE_TRY}
            for cell in self.document["cells"]
        ]
        return {**self.document, "run": None, "cells": cells}


WAYS = (
    Way(
        name="on the cluster",
        words=lambda cluster, runs: [
            *_python("-m", "orchestrator", *SUITE),
            *(f"cluster.address={cluster.address}", f"runs={runs}"),
        ],
    ),
    Way(
        name="ray job submit",
        words=lambda cluster, runs: [
            *(str(BIN / "ray"), "job", "submit", f"--address={cluster.jobs_url}"),
            *("--working-dir=.", "--", "python", "-m", "orchestrator", *SUITE),
            *("cluster.address=auto", f"runs={runs}"),
        ],
        loses_a_node=True,
    ),
    Way(
        name="vllm-matrix submit",
        words=lambda cluster, runs: [
            *_python("-m", "orchestrator", "submit", f"--address={cluster.jobs_url}"),
            *(*SUITE, f"runs={runs}", f"cluster.runs={runs.with_suffix('.there')}"),
        ],
    ),
)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="matrix-ways-"))
    _say(f"{' '.join(SUITE)}, by {len(WAYS)} ways: {', '.join(way.name for way in WAYS)}")
    began = time.monotonic()
    cluster = MixedCluster(FIVE, takes_jobs=True)
    with cluster:
        _say(f"{len(FIVE)} nodes after {time.monotonic() - began:.0f} s: {_described(FIVE)}")
        trips = [_go(way, cluster, folder / str(number)) for number, way in enumerate(WAYS, 1)]
    left = cluster.left()
    for trip in trips:
        _say(trip.verdicts)
    differing = [*_differences(trips)]
    for line in [*differing, *(f"left behind: {command}" for command in left)]:
        _say(line)
    if differing or left:
        _say(f"the runs are in {folder}")
        return 1
    count = len(trips[0].document["cells"])
    _say(f"the {len(trips)} matrices of {count} cells are identical, and nothing is left behind")
    shutil.rmtree(folder)
    return 0


def _go(way: Way, cluster: MixedCluster, runs: Path) -> Trip:
    _say(f"--- {way.name}")
    began = time.monotonic()
    lost: NodeKind | None = None
    with subprocess.Popen(way.words(cluster, runs), cwd=ROOT, env=cluster.environment()) as driver:
        while driver.poll() is None:
            if way.loses_a_node and lost is None and _ended(runs) >= ENOUGH:
                lost = _busiest(cluster)
                _say(f"*** {lost.name} is killed")
                cluster.kill(lost.name)
            time.sleep(POLL_S)
    seconds = time.monotonic() - began
    if lost is not None:
        cluster.add(lost)
    return Trip(way=way, code=driver.returncode, seconds=seconds, document=_document(runs))


def _busiest(cluster: MixedCluster) -> NodeKind:
    """Other than the head, whose end is the cluster's."""
    return max(cluster.nodes[1:], key=lambda kind: len(cluster.processes(kind.name, ".host")))


def _ended(runs: Path) -> int:
    with suppress(ValueError):
        [records] = runs.glob("*/records.jsonl")
        return records.read_bytes().count(b"\n")
    return 0


def _document(runs: Path) -> dict[str, Any]:
    [run] = [path.parent for path in runs.glob("*/run.json")]
    words = _python("-m", "orchestrator", "report", str(run), "--format", "json")
    said = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    document: dict[str, Any] = json.loads(said.stdout)
    return document


def _differences(trips: Sequence[Trip]) -> list[str]:
    first, *others = trips
    found = [f"{trip.way.name}: exit code {trip.code}" for trip in trips if trip.code != first.code]
    for other in others:
        pair = first.answer(), other.answer()
        by_id = [{cell["id"]: cell for cell in answer.pop("cells")} for answer in pair]
        found += [
            f"{other.way.name}: another {name}"
            for name in pair[0]
            if pair[0][name] != pair[1][name]
        ]
        found += [
            f"{other.way.name}: {cell_id} differs in {', '.join(_unlike(by_id, cell_id))}"
            for cell_id in sorted(by_id[0].keys() | by_id[1].keys())
            if _unlike(by_id, cell_id)
        ]
    return found


def _unlike(by_id: Sequence[dict[str, dict[str, Any]]], cell_id: str) -> list[str]:
    one, two = (cells.get(cell_id, {}) for cells in by_id)
    return [name for name in {**one, **two} if one.get(name) != two.get(name)]


def _placed(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in document["cells"] if cell["placement"]]


def _python(*words: str) -> list[str]:
    return [sys.executable, *words]


def _described(nodes: Sequence[NodeKind]) -> str:
    return ", ".join(f"{kind.name} ({kind.gpus} GPUs)" for kind in nodes)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
