"""Stand-ins for what fast tests cannot have: a cluster with engines on it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Attempt
from jobs.contract.terms import EngineMode, Isolation
from jobs.node.builds.provision import digest_of
from orchestrator.asked.config import ClusterChoice
from orchestrator.running.cluster import (
    BuildReady,
    Builds,
    Ended,
    Joined,
    Needs,
    News,
    Node,
    Wanted,
    this_machine,
)
from orchestrator.running.forecast import Work
from tests.builders import a_build, a_report, an_attempt

LOST_NODE = "the node went away"


@dataclass
class FakeCluster:
    """Ends every attempt at once, with the next outcome of its script or a healthy engine."""

    script: dict[str, list[Attempt | str | Ended]] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    places: list[tuple[str, ...]] = field(default_factory=list)
    """Ids of the nodes that each was submitted to."""

    there: tuple[Node, ...] = field(default_factory=lambda: (this_machine(),))
    isolations: list[Isolation] = field(default_factory=list)
    provisioned: list[str] = field(default_factory=list)
    joining: list[Node] = field(default_factory=list)
    wished_for: Sequence[Needs] = ()
    closed: bool = False
    _ended: deque[Ended] = field(default_factory=deque)

    def __call__(self, choice: ClusterChoice, say: Callable[[str], None]) -> "FakeCluster":
        del choice, say
        return self

    def nodes(self) -> tuple[Node, ...]:
        return self.there

    def provision(self, wanted: Sequence[Wanted], cache: str, say: Callable[[str], None]) -> Builds:
        del cache, say
        specs = [each.spec for each in wanted]
        self.provisioned += [spec.name for spec in specs]
        ready = {
            (spec.engine_mode, spec.name): a_build(spec.name, digest=digest_of(spec))
            for spec in specs
        }
        return Builds(ready={node.id: ready for node in self.nodes()})

    def wait_for(self, needs: Sequence[Needs]) -> None:
        self.wished_for = needs

    def news(self) -> Sequence[News]:
        joined, self.joining = self.joining, []
        return [
            each
            for node in joined
            for each in (
                Joined(node=node),
                BuildReady(node_id=node.id, key=(EngineMode.REAL, "v0_32"), build=a_build()),
            )
        ]

    def submit(
        self,
        request: CellRequest,
        needs: Needs,
        node: Node,
        followers: Sequence[tuple[CellRequest, Node]] = (),
    ) -> None:
        del needs
        self.places.append((node.id, *(other.id for _, other in followers)))
        cell_id, number = request.probe.cell_id, request.probe.attempt
        self.submitted.append(cell_id)
        self.isolations.append(request.isolation)
        outcomes = self.script.get(cell_id)
        outcome = outcomes.pop(0) if outcomes else an_attempt(a_report())
        if isinstance(outcome, Ended):
            end = outcome
        elif isinstance(outcome, str):
            end = Ended(cell_id=cell_id, number=number, infrastructure_error=outcome)
        else:
            attempt = replace(outcome, cell_id=cell_id, number=number)
            end = Ended(cell_id=cell_id, number=number, attempt=attempt)
        self._ended.append(end)

    def ended(self) -> Sequence[Ended]:
        ended = [*self._ended]
        self._ended.clear()
        return ended

    def kill(self, cell_id: str) -> None:
        raise AssertionError(f"{cell_id} ends by itself")

    def close(self) -> None:
        self.closed = True


@dataclass
class SilentProgress:
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.append(line)

    def begins(self, run: Path, line: str) -> None:
        del run
        self.lines.append(line)

    def planned(self, work: Mapping[str, Work], *, kept: int, cells: int, at_once: int) -> None:
        del at_once
        self.lines.append(f"{len(work)} of {cells} to do, {kept} kept")

    def look(self, submitted: Mapping[str, str]) -> None:
        del submitted

    def ended(self, *records: object) -> None:
        del records
