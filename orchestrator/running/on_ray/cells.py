"""Attempts of cells as Ray's tasks."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import ray
import ray.exceptions

from jobs.contract.asked import CellRequest
from jobs.node import ray_tasks
from orchestrator.running.cluster import Ended, Needs, read_attempt
from orchestrator.running.on_ray.wording import one_line

POLL_S = 0.5


class Cells:
    """Those that were submitted and have not ended."""

    def __init__(self) -> None:
        self._running: dict[Any, tuple[str, int]] = {}
        # A cell is tried again by the schedule, which records it; never behind its back.
        self._run_cell: Any = ray.remote(max_retries=0)(ray_tasks.run_cell_here)

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

    def ended(self, *, check: Callable[[], None]) -> Iterator[Ended | None]:
        while self._running:
            check()
            done, _ = ray.wait(list(self._running), num_returns=1, timeout=POLL_S)
            for reference in done:
                yield _ended(reference, *self._running.pop(reference))
            yield None

    def cancel(self) -> None:
        for reference in self._running:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)
        self._running.clear()


def _ended(reference: Any, cell_id: str, number: int) -> Ended:
    try:
        attempt = read_attempt(ray.get(reference))
    except ray.exceptions.RayError as error:
        return Ended(cell_id=cell_id, number=number, infrastructure_error=one_line(error))
    except pydantic.ValidationError as invalid:
        trouble = f"the node's answer is not valid: {one_line(invalid)}"
        return Ended(cell_id=cell_id, number=number, infrastructure_error=trouble)
    return Ended(cell_id=cell_id, number=number, attempt=attempt)
