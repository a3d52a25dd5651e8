"""What a Ray worker is asked to do. The only code on a node that knows of Ray."""

import json
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

from jobs.contract import BuildSpec, CellRequest, Placement, to_json
from jobs.node.builds.errors import BuildError, BuildSpecError
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell


def run_cell_here(request: CellRequest) -> str:
    """One attempt of a cell; returns an `Attempt` as JSON."""
    return run_cell(request, _placement())


def provision_steps(spec: BuildSpec, cache: str) -> Iterator[str]:
    """
    Make a build ready, and say how far it is while that goes on.

    Yields JSON objects: any number of `say`, then one of `build` (a
    ProvisionedBuild as JSON), `mistake` (the user's) and `trouble` (the node's).
    """
    steps: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()
    worker = threading.Thread(target=_provision, args=(spec, Path(cache), steps), daemon=True)
    worker.start()
    while True:
        step = steps.get()
        yield json.dumps(step)
        if "say" not in step:
            return


def _provision(spec: BuildSpec, cache: Path, steps: "queue.SimpleQueue[dict[str, str]]") -> None:
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
    import os

    import ray

    context = ray.get_runtime_context()
    return Placement(
        node=os.uname().nodename,
        labels={name: str(value) for name, value in context.get_node_labels().items()},
        devices=tuple(context.get_accelerator_ids().get("GPU", [])),
    )
