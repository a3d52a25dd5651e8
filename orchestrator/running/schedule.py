"""Run a plan: submit, collect, judge, and try again what another attempt may change."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.contract.builds import ProvisionedBuild
from jobs.contract.terms import Isolation
from jobs.node.cell_files import CellFiles
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import Cell
from orchestrator.concluded import causes
from orchestrator.concluded.judge import Judgement, Verdict, judge, not_run
from orchestrator.concluded.record import Record
from orchestrator.running.cluster import Cluster, Ended, Needs
from orchestrator.running.plan import Plan
from orchestrator.taxonomy import Retry, taxonomy


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

    def workdir(self, cell_id: str, attempt: int) -> str:
        return str(self.cells / cell_id / str(attempt))


class Schedule:
    """
    One pass over a plan. Yields a record for every cell, as soon as it is known, and None
    now and then while nothing ends.
    """

    def __init__(
        self, cluster: Cluster, builds: Mapping[str, ProvisionedBuild], places: Places
    ) -> None:
        """*builds* is by cell id."""
        self.submitted: dict[str, str] = {}
        """Cell id to the folder of its attempt, of those that have not ended."""

        self._cluster = cluster
        self._builds = builds
        self._places = places
        self._cells: dict[str, Cell] = {}
        self._needs: dict[str, Needs] = {}
        self._earlier: dict[str, tuple[Trouble, ...]] = {}

    def run(self, plan: Plan) -> Iterator[Record | None]:
        for cell_id, reason in plan.unplaceable.items():
            yield Record(cell_id=cell_id, judgement=not_run(reason))
        self._needs = plan.needs
        for cell in plan.runnable:
            self._cells[cell.id] = cell
            self._earlier[cell.id] = ()
            self._submit(cell)
        for end in self._cluster.ended():
            yield None if end is None else self._record(end)

    def _submit(self, cell: Cell) -> None:
        earlier = self._earlier[cell.id]
        number = len(earlier) + 1
        workdir = self.submitted[cell.id] = self._places.workdir(cell.id, number)
        CellFiles(folder=Path(workdir)).withdraw_request()
        request = cell_request(
            cell,
            self._builds[cell.id],
            attempt=number,
            workdir=workdir,
            cache=self._places.cache,
        )
        if any(trouble.retry is Retry.FRESH_HOST for trouble in earlier):
            request = dataclasses.replace(request, isolation=Isolation.COLD)
        self._cluster.submit(request, self._needs[cell.id])

    def _record(self, end: Ended) -> Record | None:
        """The record of the cell, or None when it is tried once more."""
        cell = self._cells[end.cell_id]
        earlier = self._earlier[cell.id]
        build = self._builds[cell.id]
        judgement, trouble = self._judge(cell, build, end)
        if trouble is not None and _is_worth_it(trouble, earlier, cell.attempts):
            self._earlier[cell.id] = (*earlier, trouble)
            self._submit(cell)
            return None
        del self.submitted[cell.id]
        return Record(
            cell_id=cell.id,
            digest=cell.digest(build.digest),
            parts=cell.parts(build.digest),
            build=build,
            attempt=end.attempt,
            earlier=tuple(trouble.why for trouble in earlier),
            judgement=judgement,
        )

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
