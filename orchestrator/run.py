"""One run, start to verdict: the table of contents of this package."""

import contextlib
import dataclasses
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from types import FrameType

import pydantic
import yaml

from jobs.secrets import Redactor
from orchestrator import discretion
from orchestrator.asked.cells import Cell, expand, merge, possible
from orchestrator.asked.checking import build_specs
from orchestrator.asked.conf_files import AXES
from orchestrator.asked.config import Budget, ClusterChoice, Config
from orchestrator.asked.policies import Gate
from orchestrator.concluded import gate
from orchestrator.concluded.comparison import Comparison, Side, compare
from orchestrator.concluded.matrix import Matrix
from orchestrator.errors import (
    ONE_PRESS_S,
    ClusterError,
    ConfigError,
    NothingToRunError,
    StoppedError,
    heeded,
)
from orchestrator.kept import evidence, history, reuse, run_directory, sides
from orchestrator.kept.reuse import Reuse, Seen
from orchestrator.kept.run_directory import Asked, RunDirectory
from orchestrator.running import budget, covering
from orchestrator.running.cluster import Builds, Cluster, Node
from orchestrator.running.forecast import Work
from orchestrator.running.overdue import Overdue
from orchestrator.running.plan import Plan, build_key, make_plan, wanted
from orchestrator.running.progress import Progress, duration
from orchestrator.running.schedule import Limits, Places, Schedule
from orchestrator.running.underway import RunningCells

StartCluster = Callable[[ClusterChoice, Callable[[str], None]], Cluster]
Reach = Callable[[], contextlib.AbstractContextManager[Cluster]]
"""Leads to a cluster, where one is needed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    matrix: Matrix
    decision: gate.Decision


def validate(
    configs: Sequence[Config], command: Sequence[str], start: StartCluster, progress: Progress
) -> RunDirectory:
    """Run every cell that *configs* describe, as one matrix."""
    asked = ask(configs, command)
    common = _common(configs)
    if common.resume and (answered := _answered(asked, common)):
        unchanged = f"nothing has changed since {answered.path}, so every verdict is kept;"
        progress.begins(answered.path, unchanged)
        progress.say("resume=false runs all cells anew")
        return answered
    runs = Path(common.runs)
    sides.check(common.gate.baseline, runs)
    claim = run_directory.claimed(runs, asked, today=today(), resume=common.resume)
    with claim as (run, resumed):
        progress.begins(run.path, f"{'resuming' if resumed else 'run directory'} {run.path}")
        run.write("config.yaml", as_yaml(configs, asked.redactor()))
        seen = _seen(run, asked, progress) if common.resume else {}
        with stoppable(run):
            reach = _started(start, common, progress)
            own = run.path.name if resumed else None
            run_cells(run, asked, common, reach, progress, seen=seen, own=own)
    return run


def ask(configs: Sequence[Config], command: Sequence[str]) -> Asked:
    cells = cells_of(configs)
    common = _common(configs)
    asked = Asked(
        suite=common.suite.name,
        command=tuple(command),
        gate=common.gate,
        cells=cells,
        proof=common.suite.proof,
        evidence=evidence.gather(common.evidence or (), cells),
    )
    discretion.hide({}, words=asked.words())
    return asked


def _seen(run: RunDirectory, asked: Asked, progress: Progress) -> dict[str, Seen]:
    return reuse.seen_before(run.path.parent, asked.suite, asked.cells, progress.say)


def _started(start: StartCluster, config: Config, progress: Progress) -> Reach:
    def reach() -> contextlib.AbstractContextManager[Cluster]:
        progress.say(f"starting Ray on {config.cluster.address or 'this machine'}")
        return contextlib.closing(start(config.cluster, progress.say))

    return reach


def _answered(asked: Asked, config: Config) -> RunDirectory | None:
    """The finished run that holds all that could be found out now, if there is one."""
    seen = reuse.seen_before(Path(config.runs), asked.suite, asked.cells)
    reused = reuse.decide(asked.cells, seen, reuse.digests_at_hand(asked.cells, config.cluster))
    if (name := reuse.settled(reused, seen)) is None:
        return None
    run = RunDirectory(Path(config.runs, name))
    with contextlib.suppress(ClusterError):
        if run.asked().terms() == asked.terms():
            return run
    return None


def run_cells(  # noqa: PLR0913  # a run is made of these
    run: RunDirectory,
    asked: Asked,
    config: Config,
    reach: Reach,
    progress: Progress,
    *,
    seen: Mapping[str, Seen],
    own: str | None = None,
) -> None:
    """*seen* may be kept; *own* is the run that goes on, if one does."""
    say = progress.say
    at_hand = reuse.digests_at_hand(asked.cells, config.cluster)
    reused = reuse.decide(asked.cells, seen, at_hand, own=own)
    reuse.take_over(reused, run)
    for line in reuse.sentences(reused):
        progress.say(line)
    if not reused.why:
        return
    with reach() as cluster:
        earlier = history.read(run.path.parent)
        todo = reused.left(asked.cells)
        nodes = cluster.nodes()
        wait = config.wait_s is not None
        plan = make_plan(todo, nodes, earlier.memory_gib(todo), wait=wait)
        plan = _within_budget(plan, config.budget, earlier.work(plan.runnable), nodes, reused)
        cluster.wait_for([plan.needs[cell_id] for cell_id in plan.missing])
        for line in _waits(plan, config.wait_s or 0.0):
            say(line)
        builds = cluster.provision(wanted(plan), config.cache, say)
        # Builds of files that only the nodes have can be compared only now.
        reused = reuse.decide(plan.runnable, seen, _digests(plan.runnable, builds), own=own)
        reuse.take_over(reused, run)
        plan = dataclasses.replace(plan, runnable=reused.left(plan.runnable))
        work = earlier.work(plan.runnable)
        progress.planned(
            work,
            kept=len(asked.cells) - len(plan.runnable) - len(plan.unplaceable),
            cells=len(asked.cells),
            at_once=plan.at_once,
        )
        places = Places(cells=run.cells.resolve(), cache=config.cache, home=run.home())
        schedule = Schedule(cluster, nodes, builds, places, say)
        overdue = Overdue(plan.runnable, RunningCells())
        limits = _limits(config, asked.cells, kept=[*reused.kept])
        for records in schedule.run(plan, work, limits):
            if records:
                run.records.append(*records)
                progress.ended(*records)
            progress.look(schedule.submitted)
            for cell_id in overdue.among(schedule.submitted):
                say(f"{cell_id} is long past its deadline: its Ray worker is killed")
                cluster.kill(cell_id)


def _within_budget(
    plan: Plan, most: Budget, work: Mapping[str, Work], nodes: Sequence[Node], reused: Reuse
) -> Plan:
    fitted = budget.within(plan, work, most, nodes, known=[*reused.kept])
    return dataclasses.replace(
        plan,
        runnable=fitted.chosen,
        unplaceable=plan.unplaceable | fitted.left_out,
        missing={cell: why for cell, why in plan.missing.items() if cell not in fitted.left_out},
    )


def _waits(plan: Plan, wait_s: float) -> Iterator[str]:
    for reason, count in Counter(plan.missing.values()).items():
        cells = "cell waits" if count == 1 else "cells wait"
        yield f"{count} {cells} up to {duration(wait_s)} for a node to join: {reason}"


def _limits(config: Config, cells: Sequence[Cell], kept: Sequence[str]) -> Limits:
    ids = [cell.id for cell in cells]
    most = config.budget.max_minutes
    return Limits(
        wait_s=config.wait_s or 0.0,
        begin_s=math.inf if most is None else most * 60,
        left_out=lambda begun: budget.left_out(
            config.budget, len(begun), covering.coverage([*begun, *kept], ids)
        ),
    )


def conclude(run: RunDirectory, *, build: str | None = None, policy: Gate | None = None) -> Result:
    """
    The matrix and the gate's answer, from what the run directory holds.

    Of one *build* alone, if one is named; by another *policy* than the run's own, if one is given.
    """
    asked = run.asked()
    policy = policy or asked.gate
    side = sides.Named(run=run, build=build).side() if build else sides.whole(run)
    compared, unusable = _compared(run, side, policy.baseline)
    decision = gate.decide(
        side.matrix,
        policy,
        today=today(),
        proof=None if build else asked.proof,
        comparison=compared,
        unusable=unusable,
    )
    return Result(matrix=side.matrix, decision=decision)


def _compared(run: RunDirectory, side: Side, baseline: str | None) -> tuple[Comparison | None, str]:
    """With the baseline, or why that can't be."""
    if baseline is None:
        return None, ""
    try:
        return compare(sides.baseline(run, baseline), side), ""
    except ConfigError as error:
        return None, f"the baseline {baseline} is of no use: {error}"


def cells_of(configs: Sequence[Config]) -> tuple[Cell, ...]:
    """Every cell of every job. Raises NothingToRunError if that is none."""
    _common(configs)
    specs = [build_specs(config) for config in configs]
    if cells := merge([expand(*job) for job in zip(configs, specs, strict=True)]):
        return cells
    raise NothingToRunError(_nothing(configs[0], possible(configs[0], specs[0])))


def _nothing(config: Config, could_be: Sequence[str]) -> str:
    if empty := [axis for axis in AXES if not getattr(config, axis)]:
        choose = " ".join(f"{axis}=[...]" for axis in empty)
        return f"there is nothing to run: no {' and no '.join(empty)} is chosen; add {choose}"
    patterns = " ".join(config.suite.select)
    example = f"such as {could_be[0]}" if could_be else "because no combination can exist"
    return (
        f"there is nothing to run: suite.select ({patterns}) leaves none of "
        f"{len(could_be)} cells, {example}"
    )


def _common(configs: Sequence[Config]) -> Config:
    """What holds for the run as a whole has to be the same in every job of a multirun."""
    first, *others = configs
    differing = [
        name
        for name in ("gate", "budget", "wait_s", "cluster", "evidence", "runs", "resume", "cache")
        if any(getattr(other, name) != getattr(first, name) for other in others)
    ]
    if any(other.suite.proof != first.suite.proof for other in others):
        differing.append("suite.proof")
    if differing:
        raise ConfigError(
            "a multirun makes one matrix, so these can have one value only:", differing
        )
    return first


def _digests(cells: Sequence[Cell], builds: Builds) -> dict[str, str]:
    """By cell id: of its build, which is the same on every node that has it."""
    known = {key: build.digest for ready in builds.ready.values() for key, build in ready.items()}
    keys = {cell.id: build_key(cell) for cell in cells}
    return {cell_id: known[key] for cell_id, key in keys.items() if key in known}


def as_yaml(configs: Sequence[Config], hidden: Redactor) -> str:
    """The resolved configuration; a multirun has one document per job."""
    adapter = pydantic.TypeAdapter(Config)
    dumped = [hidden.value(adapter.dump_python(config, mode="json")) for config in configs]
    return yaml.safe_dump_all(dumped, sort_keys=False)


@contextlib.contextmanager
def stoppable(run: RunDirectory) -> Iterator[None]:
    """The first of these signals ends the run in good order, a second one at once."""
    before = {number: signal.getsignal(number) for number in heeded()}
    came: list[tuple[signal.Signals, float]] = []

    def stop(number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if came and now - came[0][1] < ONE_PRESS_S:
            return
        if came:
            os._exit(StoppedError.exit_code)
        came.append((signal.Signals(number), now))
        # The one exception that Ray lets through its own waiting.
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt:
        by = came[0][0].name if came else "an interrupt"
        kept = f"what finished is kept in {run.path}, and the same command goes on from there"
        raise StoppedError(f"stopped by {by}; {kept}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def today() -> date:
    return datetime.now(UTC).date()
