"""
Cells that several nodes run together, each its part, as Ray's tasks.

Ray keeps a place for all of them at once, or for none: two runs that want the same nodes can't
each hold half of what they need. Then the part that leads says where the others find it.
"""

import contextlib
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import ray
import ray.exceptions
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from jobs.contract.asked import CellRequest
from jobs.node import ray_tasks
from orchestrator.running.cluster import Ended, Needs, Node
from orchestrator.running.on_ray import nodes
from orchestrator.running.on_ray.wording import one_line
from orchestrator.running.parts import PartEnded, joined, led_at, parted

Understood = Callable[[CellRequest, Callable[[], Any]], Ended]
"""What came of a part, given what it was asked and how to get its answer."""


class Span:
    """One attempt of such a cell."""

    def __init__(
        self,
        requests: Sequence[CellRequest],
        there: Sequence[Node],
        needs: Needs,
        understood: Understood,
    ) -> None:
        self.there = tuple(there)
        self.requests = parted(requests, there, uuid.uuid4().hex)
        self._needs = needs
        self._understood = understood
        self._group = placement_group(
            [_bundle(needs)] * len(there),
            strategy="STRICT_SPREAD",
            bundle_label_selector=[nodes.only(node.id) for node in there],
        )
        lead: Any = ray.remote(max_retries=0)(ray_tasks.lead_cell_here)
        self._answers = self._begun(lead, 0, self.requests[0])
        """Of the part that leads, as Ray hands them on: its port, and what came of it."""

        self._running: dict[Any, int] = {self._answers: 0}
        """By Ray's reference: the number of the part."""

        self._ends: list[PartEnded] = []
        self._is_led = False

    @property
    def references(self) -> list[Any]:
        return [*self._running]

    def hear(self, reference: Any) -> None:
        """What a part has to say that has something."""
        number = self._running[reference]
        if number:
            self._end(reference, lambda: ray.get(reference))
        elif self._is_led:
            self._end(reference, lambda: ray.get(next(self._answers)))
        else:
            self._lead()

    def leave(self, node_id: str) -> None:
        """The node is gone: Ray would look for another in its place, and find none."""
        for reference, number in [*self._running.items()]:
            if self.there[number].id == node_id:
                self._lose(reference, "the node left the cluster")

    def ended(self) -> Ended | None:
        """Once all parts have, and nothing is kept for them any more."""
        if self._running:
            return None
        remove_placement_group(self._group)
        return joined(self._ends)

    def cancel(self, *, force: bool) -> None:
        for reference in self._running:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=force)

    def drop(self) -> None:
        self.cancel(force=True)
        remove_placement_group(self._group)

    def _begun(self, task: Any, number: int, request: CellRequest) -> Any:
        there = PlacementGroupSchedulingStrategy(
            self._group, number, placement_group_capture_child_tasks=False
        )
        needs = self._needs
        chosen = task.options(
            name=request.probe.cell_id,
            num_cpus=needs.cpus,
            num_gpus=needs.devices,
            memory=_bytes(needs),
            scheduling_strategy=there,
        )
        return chosen.remote(request)

    def _lead(self) -> None:
        try:
            port = ray.get(next(self._answers))
        except (ray.exceptions.RayError, StopIteration) as error:
            self._lose(self._answers, one_line(error))
            return
        self._is_led = True
        run: Any = ray.remote(max_retries=0)(ray_tasks.run_cell_here)
        for number, request in enumerate(self.requests[1:], 1):
            self._running[self._begun(run, number, led_at(request, port))] = number

    def _end(self, reference: Any, answer: Callable[[], Any]) -> None:
        number = self._running.pop(reference)
        end = self._understood(self.requests[number], answer)
        self._ends.append(PartEnded(node=self.there[number], number=number, end=end))
        if end.attempt is None:
            # What it would have told the others nobody tells them.
            self.cancel(force=False)

    def _lose(self, reference: Any, why: str) -> None:
        def lost() -> Any:
            raise ray.exceptions.RayError(why)

        with contextlib.suppress(ray.exceptions.RayError):
            ray.cancel(reference, force=False)
        self._end(reference, lost)


def _bundle(needs: Needs) -> dict[str, float]:
    share = {"CPU": needs.cpus, "GPU": needs.devices, "memory": _bytes(needs)}
    return {name: float(amount) for name, amount in share.items() if amount}


def _bytes(needs: Needs) -> int:
    return int(needs.memory_gib * 2**30)
