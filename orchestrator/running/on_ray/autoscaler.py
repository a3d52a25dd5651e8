"""
The cluster's autoscaler, asked for nodes that cells wait for.

It is asked in the way that Ray itself asks: by a task that only such a node can run. That goes
when its driver goes, however it goes, and leaves alone what others have asked for;
`request_resources` stays when a driver is killed, and each call undoes everybody else's.
"""

import contextlib
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import ray
import ray.exceptions
from ray.autoscaler.v2.utils import is_autoscaler_v2
from ray.core.generated import autoscaler_pb2

from jobs.node import caches, ray_tasks
from orchestrator.running.cluster import Needs

REACH_S = 5.0


class Autoscaler:
    def __init__(self) -> None:
        self._asked: dict[Hashable, tuple[Needs, Any]] = {}
        """The tasks that such nodes could run, by what is needed."""

        self._said: set[str] = set()
        self._look: Any = ray.remote(max_retries=0)(ray_tasks.look_at_node)

    def ask(self, wanted: Sequence[Needs]) -> None:
        """For a node of each of these kinds, and for no other any more."""
        kinds = {needs.kind: needs for needs in wanted}
        for kind in self._asked.keys() - kinds.keys():
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(self._asked.pop(kind)[1])
        for kind in kinds.keys() - self._asked.keys():
            self._asked[kind] = kinds[kind], self._task(kinds[kind])

    def news(self) -> Iterator[str]:
        """What it makes of that, each said once; nothing while the head does not answer."""
        lines: list[str] = []
        if self._asked:
            with contextlib.suppress(ray.exceptions.RayError):
                lines += self._lines()
        for line in lines:
            if line not in self._said:
                self._said.add(line)
                yield line

    def _task(self, needs: Needs) -> Any:
        # Of memory nothing is said: kinds of nodes are often described without.
        task = self._look.options(
            num_cpus=needs.cpus, num_gpus=needs.devices, label_selector=needs.labels
        )
        return task.remote(caches.USUAL)

    def _lines(self) -> Iterator[str]:
        if not is_autoscaler_v2():
            yield (
                "the cluster has no autoscaler that knows labels, so somebody has to start such a "
                "node: with Ray's second one (RAY_enable_autoscaler_v2=1) it would be asked"
            )
            return
        state = _state()
        for needs, _ in self._asked.values():
            infeasible = _is_infeasible(needs, state)
            yield _lacking(needs) if infeasible else f"the autoscaler is asked for {_words(needs)}"
        starting = [each.ray_node_type_name for each in state.pending_instances]
        for each in state.pending_instance_requests:
            starting += [each.ray_node_type_name] * each.count
        for group, count in Counter(starting).items():
            yield f"the autoscaler starts {count} of its group {group}"
        for failed in state.failed_instance_requests:
            yield (
                f"the autoscaler can't start a node of its group {failed.ray_node_type_name}: "
                f"{failed.reason}"
            )


def _words(needs: Needs) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in needs.labels.items())
    amount = f"{needs.devices} GPUs" if needs.devices else f"{needs.cpus} CPUs"
    return f"a node of {amount} with {labels}"


def _lacking(needs: Needs) -> str:
    return (
        f"the autoscaler has no group of nodes like {_words(needs)}: give those labels and "
        "resources to one of its groups, or start such a node"
    )


def _state() -> Any:
    """Ray's own message; `ray.autoscaler.v2.sdk` leaves out of it what can't be had."""
    worker: Any = ray._private.worker.global_worker  # noqa: SLF001  nothing public has its client
    messages: Any = autoscaler_pb2
    said = worker.gcs_client.get_cluster_status(timeout_s=REACH_S)
    return messages.GetClusterStatusReply.FromString(said).autoscaling_state


def _is_infeasible(needs: Needs, state: Any) -> bool:
    return any(
        _labels(request) == needs.labels and request.resources_bundle.get("GPU", 0) == needs.devices
        for request in state.infeasible_resource_requests
    )


def _labels(request: Any) -> dict[str, str]:
    return {
        each.label_key: value
        for selector in request.label_selectors
        for each in selector.label_constraints
        for value in each.label_values
    }
