"""
What runs on nodes that do not see the run's folder.

What is known of running cells, progress and deadlines read in the files of their attempts; so
these get files here, made of what their node answers now and then.
"""

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import ray
import ray.exceptions

from jobs.contract.asked import CellRequest
from jobs.node import ray_tasks
from jobs.node.cell_files import CellFiles

LOOK_EVERY_S = 2.0


class Mirror:
    def __init__(self, on: Callable[[str], Any]) -> None:
        """*on* makes Ray's strategy for a node's id."""
        self._on = on
        self._phases: Any = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.phases_of_cells)
        self._asked: dict[str, Any] = {}
        self._copies: set[str] = set()
        """Folders of attempts whose files here are copies."""

        self._looked = time.monotonic()

    def look(self, running: Iterable[tuple[str, CellRequest]]) -> None:
        """*running* are ids of nodes, and what each was asked. Cheap: it asks now and then."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return
        self._looked = now
        self._read()
        for node_id, requests in self._away(running).items():
            if node_id not in self._asked:
                task = self._phases.options(scheduling_strategy=self._on(node_id))
                workdirs = [request.workdir for request in requests]
                self._asked[node_id] = task.remote(requests[0].home, workdirs, requests[0].cache)

    def _away(self, running: Iterable[tuple[str, CellRequest]]) -> dict[str, list[CellRequest]]:
        """Those that wait look the same; their nodes have nothing to say of them."""
        by_node: dict[str, list[CellRequest]] = defaultdict(list)
        for node_id, request in running:
            is_copy = request.workdir in self._copies
            if request.home and (is_copy or not _files(request.workdir).request.exists()):
                by_node[node_id].append(request)
        return by_node

    def _read(self) -> None:
        for node_id, reference in [*self._asked.items()]:
            if ray.wait([reference], timeout=0)[0]:
                del self._asked[node_id]
                with contextlib.suppress(ray.exceptions.RayError, OSError):
                    self._copy(json.loads(ray.get(reference)))

    def _copy(self, phases: Mapping[str, str | None]) -> None:
        for workdir, phase in phases.items():
            self._copies.add(workdir)
            files = _files(workdir)
            files.folder.mkdir(parents=True, exist_ok=True)
            files.request.touch()
            if phase is not None:
                files.phase.write_text(json.dumps({"phase": phase}))


def _files(workdir: str) -> CellFiles:
    return CellFiles(folder=Path(workdir))
