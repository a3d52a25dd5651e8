"""A Ray cluster, by way of the only module that imports Ray."""

import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pydantic
import ray
import ray.exceptions

from jobs.contract.asked import CellRequest
from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.node import ray_tasks
from orchestrator.asked.config import ClusterChoice
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.running import local_ray, vital
from orchestrator.running.cluster import Ended, Needs, Node, read_attempt, read_build

STDERR = 2
POLL_S = 0.5
REACH_S = 5.0
SILENT_S = 2 * ray_tasks.CLEAR_UP_S
"""For a worker to start, and to clear up after its deadline."""


class RayCluster:
    def __init__(self, choice: ClusterChoice, say: Callable[[str], None]) -> None:
        self._running: dict[Any, tuple[str, int]] = {}
        self._session: Path | None = None
        # A cell is tried again by the schedule, which records it; never behind its back.
        self._run_cell = ray.remote(max_retries=0)(ray_tasks.run_cell_here)
        self._provision = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.provision_steps)
        self._kill = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.kill_worker_of)
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Ray would turn SIGTERM into an exit of its own.
        on_terminate = signal.getsignal(signal.SIGTERM)
        with contextlib.ExitStack() as undo:
            undo.enter_context(_silence())
            try:
                if choice.address:
                    _connect(choice)
                else:
                    self._session = local_ray.start(choice, say)
                signal.signal(signal.SIGTERM, on_terminate)
            # Ray raises Exception itself where its processes are slow to start.
            except Exception as error:
                where = choice.address or "this machine"
                raise ClusterError(
                    f"Ray on {where} can't be reached or started: {error}"
                ) from error
            undo.callback(self._leave)
            self._undo = undo.pop_all()
        self._vital = vital.below(os.getpid())

    def nodes(self) -> tuple[Node, ...]:
        alive = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        return tuple(map(_node, alive))

    def provision(
        self,
        specs: Sequence[BuildSpec],
        cache: str,
        say: Callable[[str], None],
        *,
        deadline_s: float,
    ) -> dict[str, ProvisionedBuild]:
        """On every node; the builds returned are the first node's."""
        ready: dict[str, ProvisionedBuild] = {}
        mistakes: list[str] = []
        for node in self.nodes():
            for spec in specs:
                name = f"provision {spec.name}"
                task = self._provision.options(name=name, label_selector=_only(node))
                for step in self._steps(name, task.remote(spec, cache, deadline_s), deadline_s):
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

    def submit(self, request: CellRequest, needs: Needs) -> None:
        task = self._run_cell.options(
            name=request.probe.cell_id,
            num_cpus=needs.cpus,
            num_gpus=needs.devices,
            memory=int(needs.memory_gib * 2**30),
            label_selector=needs.labels,
        )
        attempt = request.probe.cell_id, request.probe.attempt
        self._running[task.remote(request)] = attempt

    def ended(self) -> Iterator[Ended | None]:
        while self._running:
            self._check_vital()
            done, _ = ray.wait(list(self._running), num_returns=1, timeout=POLL_S)
            for reference in done:
                yield _ended(reference, *self._running.pop(reference))
            yield None

    def kill(self, cell_id: str) -> None:
        self._kill_worker_of(cell_id)

    def close(self) -> None:
        for reference in self._running:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)
        self._running.clear()
        self._undo.close()

    def _leave(self) -> None:
        intact = all(map(vital.is_alive, self._vital))
        ray.shutdown(wait_for_processes=True)
        # What it wrote may tell how it lost a process.
        if intact and self._session:
            shutil.rmtree(self._session, ignore_errors=True)

    def _kill_worker_of(self, task: str) -> None:
        """Ray's own way would have to be heard by the worker."""
        kills = [
            self._kill.options(label_selector=_only(node)).remote(task) for node in self.nodes()
        ]
        ray.wait(kills, num_returns=len(kills), timeout=REACH_S)

    def _steps(self, task: str, generator: Any, deadline_s: float) -> Iterator[dict[str, str]]:
        """What a provisioning task says while it works."""
        until = time.monotonic() + deadline_s + SILENT_S
        step = {"say": ""}
        try:
            while "say" in step:
                self._check_vital()
                if time.monotonic() > until:
                    self._kill_worker_of(task)
                    raise ClusterError(f"{task}: its Ray worker is silent, long past its deadline")
                if ray.wait([generator], timeout=POLL_S)[0]:
                    step = json.loads(ray.get(next(generator)))
                    yield step
        except ray.exceptions.RayError as error:
            raise ClusterError(f"provisioning failed: {_one_line(error)}") from error

    def _check_vital(self) -> None:
        """Ray itself would notice later, and end this process without a word."""
        for process in self._vital:
            if not vital.is_alive(process):
                raise ClusterError(
                    f"Ray lost its {process.name()}: somebody killed or stopped it, or memory ran "
                    "out. What finished is kept, and the same command goes on from there."
                )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Of Ray, whose state dumps and tracebacks go past Python: what matters is raised as well."""
    ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  there is no public switch
    kept = os.dup(STDERR)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), STDERR)
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def _connect(choice: ClusterChoice) -> None:
    _check_reachable(str(choice.address))
    ray.init(
        address=choice.address,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )


def _check_reachable(address: str) -> None:
    """Ray would try for minutes. Addresses that are no HOST:PORT are Ray's to understand."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=REACH_S).close()


def _only(node: Node) -> dict[str, str]:
    return {"ray.io/node-id": node.id}


def _node(raw: dict[str, Any]) -> Node:
    labels: dict[str, str] = raw["Labels"]
    resources: dict[str, float] = raw["Resources"]
    vendor: Any = labels.get("vm.vendor", "cpu")
    unlabelled = "it carries none of our labels (vm.cpu, vm.vendor, vm.card, vm.arch)"
    return Node(
        id=raw["NodeID"],
        name=raw["NodeName"],
        address=raw["NodeManagerAddress"],
        vendor=vendor,
        card=labels.get("vm.card"),
        arch=labels.get("vm.arch"),
        devices=int(resources.get("GPU", 0)),
        cpus=resources.get("CPU", 0.0),
        memory_gib=resources.get("memory", 0.0) / 2**30,
        labels=labels,
        troubles=() if "vm.cpu" in labels else (unlabelled,),
    )


def _ended(reference: Any, cell_id: str, number: int) -> Ended:
    try:
        attempt = read_attempt(ray.get(reference))
    except ray.exceptions.RayError as error:
        return Ended(cell_id=cell_id, number=number, infrastructure_error=_one_line(error))
    except pydantic.ValidationError as invalid:
        trouble = f"the node's answer is not valid: {_one_line(invalid)}"
        return Ended(cell_id=cell_id, number=number, infrastructure_error=trouble)
    return Ended(cell_id=cell_id, number=number, attempt=attempt)


def _one_line(error: Exception) -> str:
    """The cause of a task's error where there is one, without Ray's traceback."""
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(cause).__name__
