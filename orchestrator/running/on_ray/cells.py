"""Attempts of cells as Ray's tasks."""

import contextlib
import dataclasses
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pydantic
import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Attempt
from jobs.node import ray_tasks
from jobs.node.away import LARGEST
from jobs.node.cell_files import CellFiles
from orchestrator.running.cluster import Ended, Needs, Node, read_attempt
from orchestrator.running.on_ray.mirror import Mirror
from orchestrator.running.on_ray.spans import Span
from orchestrator.running.on_ray.wording import one_line

POLL_S = 0.5
TOGETHER_S = 0.05

RunCell = Callable[[CellRequest], tuple[str, Mapping[str, bytes]]]


class Cells:
    """Those that were submitted and have not ended."""

    def __init__(self, run_cell: RunCell = ray_tasks.run_cell_here) -> None:
        self._sent: dict[Any, tuple[str, CellRequest]] = {}
        """By Ray's reference: the id of the node, and what it was asked."""

        # A cell is tried again by the schedule, which records it; never behind its back.
        self._run_cell: Any = ray.remote(max_retries=0)(run_cell)
        self._spans: list[Span] = []
        self._mirror = Mirror(_on)

    def submit(
        self,
        request: CellRequest,
        needs: Needs,
        node: Node,
        followers: Sequence[tuple[CellRequest, Node]] = (),
    ) -> None:
        if followers:
            requests, there = zip((request, node), *followers, strict=True)
            self._spans.append(Span(requests, there, needs, _ended))
            return
        task = self._run_cell.options(
            name=request.probe.cell_id,
            num_cpus=needs.cpus,
            num_gpus=needs.devices,
            memory=int(needs.memory_gib * 2**30),
            scheduling_strategy=_on(node.id),
        )
        self._sent[task.remote(request)] = node.id, request

    def ended(self) -> list[Ended]:
        """All that ended, after waiting a moment for the first."""
        references = [*self._sent, *(each for span in self._spans for each in span.references)]
        if not references:
            time.sleep(POLL_S)
            return self._ended_spans()
        self._mirror.look(self._running())
        if not ray.wait(references, num_returns=1, timeout=POLL_S)[0]:
            return []
        # Others may be about to end: what comes together is judged and kept together.
        done, _ = ray.wait(references, num_returns=len(references), timeout=TOGETHER_S)
        ends = [
            _ended(self._sent.pop(reference)[1], partial(ray.get, reference))
            for reference in done
            if reference in self._sent
        ]
        for span in self._spans:
            for reference in {*done}.intersection(span.references):
                span.hear(reference)
        return [*ends, *self._ended_spans()]

    def leave(self, node_id: str) -> None:
        """The node is gone. Cells that it has all of end by themselves."""
        for span in self._spans:
            span.leave(node_id)

    def _running(self) -> Iterator[tuple[str, CellRequest]]:
        yield from self._sent.values()
        yield from ((span.there[0].id, span.requests[0]) for span in self._spans)

    def _ended_spans(self) -> list[Ended]:
        ended = [(span, end) for span in self._spans if (end := span.ended())]
        for span, _ in ended:
            self._spans.remove(span)
        return [end for _, end in ended]

    def cancel(self) -> None:
        for span in self._spans:
            span.drop()
        self._spans.clear()
        for reference in self._sent:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)
        self._sent.clear()


def _on(node_id: str) -> Any:
    """Hard: a task for a node that is gone fails at once, rather than wait for ever."""
    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def _ended(request: CellRequest, answer: Callable[[], Any]) -> Ended:
    cell_id, number = request.probe.cell_id, request.probe.attempt
    try:
        text, files = answer()
        attempt = _brought_home(read_attempt(text), request, files)
    except ray.exceptions.RayError as error:
        trouble = one_line(error)
    except pydantic.ValidationError as invalid:
        trouble = f"the node's answer is not valid: {one_line(invalid)}"
    except (OSError, ValueError, zlib.error) as error:
        trouble = f"what the node sent can't be kept: {error}"
    else:
        return Ended(cell_id=cell_id, number=number, attempt=attempt)
    return Ended(cell_id=cell_id, number=number, infrastructure_error=trouble)


def _brought_home(attempt: Attempt, request: CellRequest, files: Mapping[str, bytes]) -> Attempt:
    if not files:
        return attempt
    home = CellFiles(folder=Path(request.workdir))
    home.folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if Path(name).name != name:
            raise ValueError(f"{name} is no file of an attempt's folder")
        (home.folder / name).write_bytes(zlib.decompressobj().decompress(content, LARGEST))
    return dataclasses.replace(attempt, log=str(home.log))
