"""The life of our connection to Ray: started or reached, watched, and left."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import ray

from jobs.contract.asked import CellRequest
from jobs.node import inventory
from orchestrator.asked.config import ClusterChoice
from orchestrator.errors import ClusterError, RunError
from orchestrator.running import vital
from orchestrator.running.cluster import (
    Builds,
    Ended,
    Joined,
    Left,
    Needs,
    News,
    Node,
    Room,
    Wanted,
)
from orchestrator.running.on_ray import builds, connection, local, nodes
from orchestrator.running.on_ray.autoscaler import Autoscaler
from orchestrator.running.on_ray.cells import Cells
from orchestrator.running.on_ray.door import Door
from orchestrator.running.on_ray.nodes import Nodes

STDERR = 2
LOOK_EVERY_S = 2.0
"""For nodes that came or went."""


class RayCluster:
    def __init__(self, choice: ClusterChoice, say: Callable[[str], None]) -> None:
        self._session: Path | None = None
        self.door: Door = "on"
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Ray would turn SIGTERM into an exit of its own.
        on_terminate = signal.getsignal(signal.SIGTERM)
        with contextlib.ExitStack() as undo:
            undo.enter_context(_silence())
            try:
                if choice.address:
                    self.door = connection.connect(choice.address)
                    self._nodes = Nodes({})
                else:
                    self._session = local.start(choice, say)
                    self._nodes = Nodes({ray.get_runtime_context().get_node_id(): inventory.look()})
                signal.signal(signal.SIGTERM, on_terminate)
            except RunError:
                raise
            # Ray raises Exception itself where its processes are slow to start.
            except Exception as error:
                where = choice.address or "this machine"
                raise ClusterError(
                    f"Ray on {where} can't be reached or started: {error}"
                ) from error
            undo.callback(self._leave)
            self._undo = undo.pop_all()
        self._vital = vital.below(os.getpid())
        self._cells = Cells()
        self._autoscaler = Autoscaler()
        self._there: dict[str, Node] = {}
        self._wanted: Sequence[Wanted] = ()
        self._builds: builds.Provisioning | None = None
        self._looked = time.monotonic()

    def nodes(self) -> tuple[Node, ...]:
        there = self._nodes.all()
        self._there = {node.id: node for node in there}
        return there

    def rooms(self) -> dict[str, Room]:
        """What is free on each node, by id."""
        return nodes.rooms()

    def provision(self, wanted: Sequence[Wanted], cache: str, say: Callable[[str], None]) -> Builds:
        self._wanted, self._builds = wanted, builds.Provisioning(cache)
        for node in self._there.values():
            self._begin(node, self._builds)
        return builds.first(self._builds, self._there, say, self._check_vital)

    def wait_for(self, needs: Sequence[Needs]) -> None:
        self._autoscaler.ask(needs)

    def news(self) -> Iterator[News]:
        if self._builds:
            yield from self._builds.news()
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY_S:
            self._looked = now
            yield from self._moves()
            yield from self._autoscaler.news()

    def _moves(self) -> Iterator[Joined | Left]:
        alive = {node.id: node for node in self._nodes.known()}
        for node_id in self._there.keys() - alive.keys():
            del self._there[node_id]
            self._cells.leave(node_id)
            yield Left(node_id=node_id)
        for node_id in alive.keys() - self._there.keys():
            node = self._there[node_id] = alive[node_id]
            yield Joined(node=node)
            if self._builds:
                self._begin(node, self._builds)

    def _begin(self, node: Node, work: builds.Provisioning) -> None:
        for each in self._wanted:
            if each.is_for(node):
                work.begin(node, [each.spec], deadline_s=each.deadline_s)

    def submit(
        self,
        request: CellRequest,
        needs: Needs,
        node: Node,
        followers: Sequence[tuple[CellRequest, Node]] = (),
    ) -> None:
        self._cells.submit(request, needs, node, followers)

    def ended(self) -> Sequence[Ended]:
        self._check_vital()
        return self._cells.ended()

    def kill(self, cell_id: str) -> None:
        nodes.kill_worker_of(cell_id)

    def close(self) -> None:
        self._autoscaler.ask(())
        self._cells.cancel()
        self._undo.close()

    def _leave(self) -> None:
        intact = all(map(vital.is_alive, self._vital))
        ray.shutdown(wait_for_processes=True)
        # What it wrote may tell how it lost a process.
        if intact and self._session:
            shutil.rmtree(self._session, ignore_errors=True)

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
