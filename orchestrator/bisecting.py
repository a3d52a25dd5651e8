"""The search for the version that changed a cell: one run, to which one cell is added at a time."""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.asked.config import Config
from orchestrator.asked.lineage import Lineage, Version, with_builds, words
from orchestrator.concluded import bisection
from orchestrator.concluded.bisection import Criterion, Finding, Side, Sides
from orchestrator.concluded.judge import not_run
from orchestrator.concluded.kinds import Known
from orchestrator.concluded.record import Record
from orchestrator.errors import ConfigError
from orchestrator.kept import reuse, run_directory
from orchestrator.kept.run_directory import Asked, RunDirectory
from orchestrator.run import StartCluster, as_yaml, ask, run_cells, stoppable, today
from orchestrator.running.cluster import Cluster
from orchestrator.running.progress import Progress

NO_ENDS = "there is nothing to search between these two:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    known: Known
    side: Side
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    run: RunDirectory
    row: Lineage
    tried: Mapping[int, Tried]
    """By place in the row."""

    finding: Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    question: tuple[str, ...]
    """The words that choose one cell, but for its build."""

    config: Config
    """What they say, and of which builds the search takes no notice."""

    until: str | None
    """The category of failure to look for; None: whatever tells the ends apart."""

    start: StartCluster
    progress: Progress


def bisect(row: Lineage, terms: Terms) -> Searched:
    """Raises ConfigError if the ends are not as they are said to be."""
    last = len(row.versions) - 1
    places = [*dict.fromkeys([0, last, *_told_before(row, terms)])]
    asked, config = _asked([row.versions[at] for at in places], terms)
    claim = run_directory.claimed(Path(config.runs), asked, today=today(), resume=False)
    with claim as (run, _), stoppable(run), contextlib.closing(_Steps(run, terms)) as steps:
        terms.progress.begins(run.path, f"run directory {run.path}")
        known = dict(zip(places, steps.run([row.versions[at] for at in places]), strict=True))
        criterion = _criterion(known[0], known[last], row, terms.until)
        tried = {at: _tried(criterion, each) for at, each in known.items()}
        terms.progress.say(_forecast(row, _sides(tried)))
        while isinstance(found := bisection.search(last + 1, _sides(tried)), int):
            [tried[found]] = (_tried(criterion, each) for each in steps.run([row.versions[found]]))
            version, side = row.versions[found], tried[found].side
            terms.progress.say(f"{version.build} ({version.title}) is {side}: {tried[found].why}")
    return Searched(run=run, row=row, tried=tried, finding=found)


class _Steps:
    """Adds cells to the run, on one cluster that is started when the first has to be tried."""

    def __init__(self, run: RunDirectory, terms: Terms) -> None:
        self._run, self._terms = run, terms
        self._versions: list[Version] = []
        self._cluster: Cluster | None = None

    def run(self, versions: Sequence[Version]) -> list[Known]:
        """What became of the cells, each with a version that can't be built as its own."""
        self._versions += versions
        asked, config = _asked(self._versions, self._terms)
        self._run.note(asked)
        self._run.write("config.yaml", as_yaml([config], asked.redactor()))
        new = [cell for cell in asked.cells if cell.build.name in {v.build for v in versions}]
        seen = reuse.seen_before(Path(config.runs), None, new) if config.resume else {}
        only = dataclasses.replace(asked, cells=tuple(new), proof=None)
        try:
            run_cells(self._run, only, config, self._reach, self._terms.progress, seen=seen)
        except ConfigError as error:
            # It can't be built as it is described, which is an answer of its own.
            why = not_run(" ".join(str(error).split()))
            self._run.records.append(*(Record(cell_id=cell.id, judgement=why) for cell in new))
        records = {record.cell_id: record for record in self._run.records}
        by_build = {cell.build.name: cell for cell in new}
        cells = [by_build[version.build] for version in versions]
        return [Known(cell=cell, record=records.get(cell.id)) for cell in cells]

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def _reach(self) -> contextlib.AbstractContextManager[Cluster]:
        if self._cluster is None:
            self._terms.progress.say("starting Ray")
            say = self._terms.progress.say
            self._cluster = self._terms.start(self._terms.config.cluster, say)
        return contextlib.nullcontext(self._cluster)


def _asked(versions: Iterable[Version], terms: Terms) -> tuple[Asked, Config]:
    versions = [*versions]
    config = with_builds(terms.config, versions)
    return ask([config], [*terms.question, *words(config, versions)]), config


def _told_before(row: Lineage, terms: Terms) -> list[int]:
    """Places of releases whose verdicts still hold: they cost nothing."""
    described = {v.build: at for at, v in enumerate(row.versions) if v.is_described}
    if not terms.config.resume or len(described) < len(row.versions):
        return []
    asked, config = _asked(row.versions, terms)
    seen = reuse.seen_before(Path(config.runs), None, asked.cells)
    at_hand = reuse.digests_at_hand(asked.cells, config.cluster)
    kept = reuse.decide(asked.cells, seen, at_hand).kept
    return [described[cell.build.name] for cell in asked.cells if cell.id in kept]


def _criterion(first: Known, last: Known, row: Lineage, until: str | None) -> Criterion:
    good, bad = (first, last) if row.good_is_older else (last, first)
    criterion = Criterion(good=good, bad=bad, until=until)
    if mistakes := [*bisection.objections(criterion)]:
        names = f"GOOD is {good.cell.build.name}, BAD is {bad.cell.build.name}"
        raise ConfigError(f"{NO_ENDS} {names}", mistakes)
    return criterion


def _tried(criterion: Criterion, known: Known) -> Tried:
    side, why = criterion.side(known)
    return Tried(known=known, side=side, why=why)


def _sides(tried: Mapping[int, Tried]) -> Sides:
    return {at: each.side for at, each in tried.items()}


def _forecast(row: Lineage, sides: Sides) -> str:
    found = bisection.search(len(row.versions), sides)
    if not isinstance(found, int):
        return "no version in between is left to try"
    most = bisection.tries_at_most(len(row.versions))
    return (
        f"the ends differ; of {len(row.versions) - 2} versions in between, {most} are tried at most"
    )
