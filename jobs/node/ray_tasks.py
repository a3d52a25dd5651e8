"""What a Ray worker is asked to do. The only code on a node that knows of Ray."""

import contextlib
import dataclasses
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs import processes
from jobs.contract.asked import CellRequest, Home, Part
from jobs.contract.attempts import Placement
from jobs.node import away, inventory, provisioning
from jobs.node.provisioning import Order
from jobs.node.run_cell import run_cell
from jobs.node.tether import ALONE, Following, Leading, Tether


def run_cell_here(request: CellRequest) -> tuple[str, away.Files]:
    """One attempt of a cell: an `Attempt` as JSON, and its files if only this node has them."""
    tether = Following(request.part) if request.part else ALONE
    with contextlib.closing(tether):
        return _run(request, tether)


def lead_cell_here(request: CellRequest) -> Iterator[int | tuple[str, away.Files]]:
    """Of several parts: the port at which the others come to this one, and then as above."""
    assert request.part is not None
    with contextlib.closing(Leading(request.part)) as tether:
        yield tether.port
        yield _run(request, tether)


def _run(request: CellRequest, tether: Tether) -> tuple[str, away.Files]:
    with away.moved(request) as (here, files):
        attempt = run_cell(here, _placement(request.part), tether)
    return attempt, files


def phases_of_cells(home: Home, workdirs: list[str], cache: str) -> str:
    """See `away.phases`; as JSON."""
    return json.dumps(away.phases(home, workdirs, cache))


def look_at_node(cache: str) -> str:
    """A `NodeSeen` as JSON."""
    return json.dumps(dataclasses.asdict(inventory.look(cache)))


def kill_worker_of(task: str) -> None:
    """By its name. A cell goes with its connection to the host."""
    raylet = processes.Tree(keeper=processes.identify(os.getppid()))
    for process in processes.alive(raylet):
        if processes.title(process.pid) == f"ray::{task}":
            processes.send(process, signal.SIGKILL)


def provision_steps(order: Order, contents: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """See `provisioning.steps`; *contents* are references into Ray's object store, by SHA-256."""
    import ray

    def fetch(sha256: str) -> Iterator[bytes] | None:
        return map(ray.get, contents[sha256]) if sha256 in contents else None

    yield from provisioning.steps(order, fetch)


def _placement(part: Part | None) -> Placement:
    """Parts go by the names of their nodes in Ray, as all that is said of them."""
    import ray

    context = ray.get_runtime_context()
    return Placement(
        node=part.node if part else os.uname().nodename,
        labels={name: str(value) for name, value in context.get_node_labels().items()},
        devices=tuple(context.get_accelerator_ids().get("GPU", [])),
    )
