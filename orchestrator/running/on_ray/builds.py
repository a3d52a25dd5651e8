"""Builds made ready on the nodes, and what is said while that goes on."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
import ray.exceptions

from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.node import ray_tasks
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.running.cluster import read_build
from orchestrator.running.on_ray import nodes
from orchestrator.running.on_ray.wording import one_line

POLL_S = 0.5
SILENT_S = 2 * ray_tasks.CLEAR_UP_S
"""For a worker to start, and to clear up after its deadline."""

Check = Callable[[], None]


def provision(
    specs: Sequence[BuildSpec],
    cache: str,
    say: Callable[[str], None],
    *,
    deadline_s: float,
    check: Check,
) -> dict[str, ProvisionedBuild]:
    """On every node; the builds returned are the first node's."""
    steps: Any = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.provision_steps)
    ready: dict[str, ProvisionedBuild] = {}
    mistakes: list[str] = []
    for node in nodes.alive():
        for spec in specs:
            name = f"provision {spec.name}"
            task = steps.options(name=name, label_selector=nodes.only(node))
            generator = task.remote(spec, cache, deadline_s)
            for step in _steps(name, generator, deadline_s, check):
                match step:
                    case {"say": line}:
                        say(line)
                    case {"build": text}:
                        ready.setdefault(spec.name, read_build(text))
                    case {"mistake": message}:
                        mistakes.append(message)
                    case _:
                        raise ClusterError(step.get("trouble", f"an unknown step: {step}"))
    if mistakes:
        raise ConfigError("a build can't be made as it is described:", dict.fromkeys(mistakes))
    return ready


def _steps(task: str, generator: Any, deadline_s: float, check: Check) -> Iterator[dict[str, str]]:
    """What a provisioning task says while it works."""
    until = time.monotonic() + deadline_s + SILENT_S
    step = {"say": ""}
    try:
        while "say" in step:
            check()
            if time.monotonic() > until:
                nodes.kill_worker_of(task)
                raise ClusterError(f"{task}: its Ray worker is silent, long past its deadline")
            if ray.wait([generator], timeout=POLL_S)[0]:
                step = json.loads(ray.get(next(generator)))
                yield step
    except ray.exceptions.RayError as error:
        raise ClusterError(f"provisioning failed: {one_line(error)}") from error
