"""Run a plan: submit, collect, judge, and try again what another attempt may change."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from jobs.contract.asked import CellRequest, Home
from jobs.contract.attempts import Attempt
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.terms import Check, Isolation
from jobs.node.cell_files import CellFiles
from orchestrator.asked import digests
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import Cell
from orchestrator.concluded import causes
from orchestrator.concluded.judge import Judgement, Verdict, judge, not_run
from orchestrator.concluded.record import Record
from orchestrator.running.cluster import (
    BuildReady,
    Builds,
    BuildTrouble,
    Cluster,
    Ended,
    Joined,
    Left,
    Needs,
    News,
    Node,
)
from orchestrator.running.dispatch import Dispatcher
from orchestrator.running.forecast import Work
from orchestrator.running.pace import Pace
from orchestrator.running.plan import Plan, build_key
from orchestrator.running.quarantine import Quarantine
from orchestrator.running.rounds import Rounds
from orchestrator.running.waiting import Waiting
from orchestrator.taxonomy import Retry, is_of_the_cluster, taxonomy


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Why an attempt need not be the last word."""

    why: str
    retry: Retry


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where attempts leave their files, and where nodes keep what they reuse."""

    cells: Path
    cache: str
    home: Home | None = None

    def workdir(self, cell_id: str, attempt: int) -> str:
        return str(self.cells / cell_id / str(attempt))


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Of a whole run, in seconds from its first cell on."""

    wait_s: float = 0.0
    """A cell that no node can run waits so long for one to join."""

    begin_s: float = math.inf
    """No attempt begins after that."""

    left_out: Callable[[AbstractSet[str]], str] = lambda _: "the time is up"
    """Why the others did not, when the cells of these ids have begun."""


class Schedule:
    """
    One pass over a plan. Yields the records of cells as soon as they are known, several at
    once or, now and then while nothing ends, none.
    """

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[Node],
        builds: Builds,
        places: Places,
        say: Callable[[str], None],
    ) -> None:
        self.submitted: dict[str, str] = {}
        """Cell id to the folder of its attempt, of those that a node was asked to run."""

        self._cluster = cluster
        self._nodes = {node.id: node for node in nodes}
        self._builds = builds
        self._places = places
        self._say = say
        self._dispatcher = Dispatcher()
        self._quarantine = Quarantine()
        self._pace = Pace()
        self._cells: dict[str, Cell] = {}
        self._work: Mapping[str, Work] = {}
        self._needs: dict[str, Needs] = {}
        self._missing: dict[str, str] = {}
        self._where: dict[str, str] = {}
        self._earlier: dict[str, tuple[Trouble, ...]] = {}
        self._rounds = Rounds((), {})

    def run(
        self, plan: Plan, work: Mapping[str, Work], limits: Limits | None = None
    ) -> Iterator[tuple[Record, ...]]:
        """*work* is by cell id: what each probably costs."""
        limits, began = limits or Limits(), time.monotonic()
        self._missing = plan.missing
        yield tuple(
            Record(cell_id=cell_id, judgement=not_run(reason))
            for cell_id, reason in plan.unplaceable.items()
        )
        self._needs, self._work = plan.needs, work
        for node in self._nodes.values():
            self._dispatcher.join(node)
            for build in self._builds.ready.get(node.id, ()):
                self._dispatcher.open(node.id, build)
            for build in self._builds.troubles.get(node.id, ()):
                self._dispatcher.close(node.id, build)
        self._cells = {cell.id: cell for cell in plan.runnable}
        self._rounds = Rounds((each for each in plan.runnable if each.speed), plan.hosts)
        for cell in (*(each for each in plan.runnable if not each.speed), *self._rounds.first()):
            self._queue(cell, avoid=frozenset())
        while self._dispatcher.waiting or self._dispatcher.running:
            for news in self._cluster.news():
                self._hear(news)
            passed_s = time.monotonic() - began
            if passed_s >= limits.wait_s:
                stranded = self._dispatcher.stranded()
                yield tuple(self._stranded(waiting, limits) for waiting in stranded)
            if passed_s >= limits.begin_s:
                yield self._left_out(limits)
            self._cluster.wait_for(self._dispatcher.homeless())
            for waiting, nodes in self._dispatcher.starts():
                self._submit(waiting.cell_id, *nodes)
            yield self._ended(self._cluster.ended())

    def _hear(self, news: News) -> None:
        match news:
            case str():
                self._say(news)
            case BuildReady():
                self._builds.ready.setdefault(news.node_id, {})[news.key] = news.build
                self._dispatcher.open(news.node_id, news.key)
            case BuildTrouble():
                self._builds.troubles.setdefault(news.node_id, {})[news.key] = news.message
                self._dispatcher.close(news.node_id, news.key)
                self._say(news.sentence(self._nodes[news.node_id].name))
            case Joined():
                self._nodes[news.node.id] = news.node
                self._dispatcher.join(news.node)
                self._say(f"{news.node.name} joined the cluster")
            case Left():
                self._dispatcher.leave(news.node_id)
                self._say(f"{self._nodes[news.node_id].name} left the cluster")

    def _ended(self, ends: Sequence[Ended]) -> tuple[Record, ...]:
        self._pace.note(self._where[end.cell_id] for end in ends)
        for node_id, cells in self._pace.recent():
            self._dispatcher.give_ahead(node_id, cells)
        return tuple(filter(None, map(self._record, ends)))

    def _queue(self, cell: Cell, *, avoid: frozenset[str]) -> None:
        work = self._work[cell.id]
        if self._isolation(cell) is not cell.isolation:
            work = dataclasses.replace(work, host=None)
        self._dispatcher.add(
            Waiting(
                cell_id=cell.id,
                needs=self._needs[cell.id],
                work=work,
                build=build_key(cell),
                suite=cell.suite,
                avoid=avoid or self._rounds.elsewhere(cell, self._nodes),
            )
        )

    def _isolation(self, cell: Cell) -> Isolation:
        """Of its next attempt."""
        earlier = self._earlier.get(cell.id, ())
        fresh = any(trouble.retry is Retry.FRESH_HOST for trouble in earlier)
        return Isolation.COLD if fresh else cell.isolation

    def _submit(self, cell_id: str, node: Node, *others: Node) -> None:
        cell = self._cells[cell_id]
        number = len(self._earlier.get(cell_id, ())) + len(self._rounds.measured(cell_id)) + 1
        workdir = self.submitted[cell_id] = self._places.workdir(cell_id, number)
        self._where[cell_id] = node.id
        CellFiles(folder=Path(workdir)).withdraw_request()
        # Who only imports vLLM makes no engine that others could have ranks of.
        ranked = () if cell.check is Check.IMPORT else others
        self._cluster.submit(
            self._request(cell, number, node),
            self._needs[cell_id],
            node,
            [(self._request(cell, number, other), other) for other in ranked],
        )

    def _request(self, cell: Cell, number: int, node: Node) -> CellRequest:
        request = cell_request(
            cell,
            self._builds.ready[node.id][build_key(cell)],
            attempt=number,
            workdir=self.submitted[cell.id],
            cache=self._places.cache,
        )
        return dataclasses.replace(request, isolation=self._isolation(cell), home=self._places.home)

    def _record(self, end: Ended) -> Record | None:
        """The record of the cell, or None when it is tried once more."""
        cell, node_id = self._cells[end.cell_id], self._where.pop(end.cell_id)
        earlier = self._earlier.get(cell.id, ())
        build = self._builds.ready[node_id][build_key(cell)]
        judgement, trouble = self._judge(cell, build, end)
        self._dispatcher.ended(cell.id)
        del self.submitted[cell.id]
        is_the_nodes = end.attempt is None or is_of_the_cluster(judgement.category)
        node_id = end.node_id or node_id
        if self._quarantine.note(node_id, cell.id, is_the_nodes=is_the_nodes):
            self._shun(self._nodes[node_id], judgement)
        if trouble is not None and _is_worth_it(trouble, earlier, cell.attempts):
            self._earlier[cell.id] = (*earlier, trouble)
            self._queue(cell, avoid=frozenset({node_id} if is_the_nodes else ()))
            return None
        passed = end.attempt if judgement.verdict is Verdict.PASSED else None
        if cell.speed is not None and self._next_round(cell, node_id, passed):
            return None
        parts = cell.parts(build.digest)
        return Record(
            cell_id=cell.id,
            digest=digests.hashed(parts),
            parts=parts,
            build=build,
            attempt=end.attempt,
            earlier=tuple(trouble.why for trouble in earlier),
            rounds=self._rounds.measured(cell.id),
            judgement=judgement,
        )

    def _next_round(self, cell: Cell, node_id: str, attempt: Attempt | None) -> bool:
        """Whether the cell has more rounds to come; whoever's turn it is waits from now on."""
        is_last, following = self._rounds.ended(cell, node_id, attempt)
        for each in following:
            self._queue(each, avoid=frozenset())
        return not is_last

    def _shun(self, node: Node, judgement: Judgement) -> None:
        self._dispatcher.shun(node.id)
        if len(self._nodes) > 1:
            why = "; ".join(judgement.reasons)
            self._say(
                f"{node.name} is in quarantine, since it failed one cell after the other for "
                f"reasons of its own ({why}): it gets what no other node can run"
            )

    def _left_out(self, limits: Limits) -> tuple[Record, ...]:
        waits = [waiting.cell_id for waiting in self._dispatcher.forget()]
        left = dict.fromkeys([*waits, *self._rounds.forget()])
        ids = [cell_id for cell_id in left if cell_id not in self.submitted]
        if not ids:
            return ()
        reason = limits.left_out(self._cells.keys() - {*ids})
        return tuple(Record(cell_id=cell_id, judgement=not_run(reason)) for cell_id in ids)

    def _stranded(self, waiting: Waiting, limits: Limits) -> Record:
        cell = self._cells[waiting.cell_id]
        if cell.speed is not None:
            self._next_round(cell, "", None)
        troubles = [
            f"{self._nodes[node_id].name}: {why}"
            for node_id, by_build in self._builds.troubles.items()
            if (why := by_build.get(build_key(cell)))
        ]
        why = self._missing.get(cell.id, "no node that could run it is left")
        if limits.wait_s:
            why = f"{why}, and none joined within {limits.wait_s:g} s"
        reason = "; ".join([why, *dict.fromkeys(troubles)])
        return Record(cell_id=cell.id, judgement=not_run(reason))

    def _judge(
        self, cell: Cell, build: ProvisionedBuild, end: Ended
    ) -> tuple[Judgement, Trouble | None]:
        """The judgement, and why the attempt may have been unlucky, if so."""
        if end.attempt is None:
            why = end.infrastructure_error or "the attempt ended without a word"
            return not_run(why), Trouble(why=why, retry=Retry.AGAIN)
        judgement = judge(cell, build, end.attempt)
        category = judgement.category
        if judgement.verdict is Verdict.PASSED or category is None:
            return judgement, None
        why = f"{category}: {causes.one_line(cell, end.attempt, category)}"
        return judgement, Trouble(why=why, retry=taxonomy().categories[category].retry)


def _is_worth_it(trouble: Trouble, earlier: Sequence[Trouble], attempts: int) -> bool:
    """Whether to try once more what was tried so often, at most *attempts* times in all."""
    if trouble.retry is Retry.NEVER or len(earlier) + 1 >= attempts:
        return False
    return trouble.retry is Retry.AGAIN or trouble.retry not in {one.retry for one in earlier}
