"""What a Ray worker is asked to do. The only code on a node that knows of Ray."""

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from jobs import processes
from jobs.contract.asked import CellRequest, Home
from jobs.contract.attempts import Placement
from jobs.contract.builds import BuildSpec
from jobs.contract.terms import Phase, to_json
from jobs.node import away
from jobs.node.builds.errors import BuildError, BuildSpecError
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell

CLEAR_UP_S = 60.0
POLL_S = 1.0

Step = dict[str, str]


def run_cell_here(request: CellRequest) -> tuple[str, away.Files]:
    """One attempt of a cell: an `Attempt` as JSON, and its files if only this node has them."""
    with away.moved(request) as (here, files):
        attempt = run_cell(here, _placement())
    return attempt, files


def phases_of_cells(home: Home, workdirs: list[str], cache: str) -> str:
    """See `away.phases`; as JSON."""
    return json.dumps(away.phases(home, workdirs, cache))


def kill_worker_of(task: str) -> None:
    """By its name. A cell goes with its connection to the host."""
    raylet = processes.Tree(keeper=processes.identify(os.getppid()))
    for process in processes.alive(raylet):
        if processes.title(process.pid) == f"ray::{task}":
            processes.send(process, signal.SIGKILL)


def provision_steps(spec: BuildSpec, cache: str, deadline_s: float) -> Iterator[str]:
    """
    Make a build ready, and say how far it is while that goes on.

    Yields JSON objects: any number of `say`, then one of `build` (a
    ProvisionedBuild as JSON), `mistake` (the user's) and `trouble` (the node's).
    """
    until = time.monotonic() + deadline_s
    steps: queue.SimpleQueue[Step] = queue.SimpleQueue()
    worker = threading.Thread(target=_provision, args=(spec, Path(cache), steps), daemon=True)
    worker.start()
    step: Step = {"say": f"{spec.name}: starting"}
    while "say" in step:
        try:
            step = steps.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            _end(worker)
            step = {"trouble": _timed_out(spec, deadline_s, step["say"])}
        yield json.dumps(step)


def _end(worker: threading.Thread) -> None:
    """Its uv is killed, upon which it clears up; one that waits for another run just waits on."""
    until = time.monotonic() + CLEAR_UP_S
    below = processes.Tree(keeper=processes.identify(os.getpid()))
    while worker.is_alive() and processes.alive(below) and time.monotonic() < until:
        processes.end_all(below, processes.AT_ONCE)
        worker.join(POLL_S)


def _timed_out(spec: BuildSpec, deadline_s: float, said: str) -> str:
    return (
        f"build {spec.name}: timed out in phase {Phase.PROVISION} after {deadline_s:g} s; "
        f'the last it said was "{said}". To allow more: deadlines.provision=SECONDS'
    )


def _provision(spec: BuildSpec, cache: Path, steps: "queue.SimpleQueue[Step]") -> None:
    try:
        build = provision(spec, cache, lambda line: steps.put({"say": line}))
    except BuildError as error:
        whose = "mistake" if isinstance(error, BuildSpecError) else "trouble"
        steps.put({whose: error.message})
    # Whatever it is, the orchestrator waits for an end.
    except BaseException as error:  # noqa: BLE001
        steps.put({"trouble": f"{spec.name}: {type(error).__name__}: {error}"})
    else:
        steps.put({"build": to_json(build)})


def _placement() -> Placement:
    import ray

    context = ray.get_runtime_context()
    return Placement(
        node=os.uname().nodename,
        labels={name: str(value) for name, value in context.get_node_labels().items()},
        devices=tuple(context.get_accelerator_ids().get("GPU", [])),
    )
