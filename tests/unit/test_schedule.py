"""Attempts, retries, and what becomes a record."""

import signal
from pathlib import Path

from jobs.contract import Exit
from orchestrator.judge import Verdict
from orchestrator.plan import Plan, needs
from orchestrator.records import Record
from orchestrator.schedule import Places, Schedule
from tests.builders import a_build, a_cell, a_failed_report, an_attempt
from tests.fakes import LOST_NODE, FakeCluster

CELL = a_cell()
KILLED = an_attempt(None, exit=Exit(signal=signal.SIGKILL))


def run(cluster: FakeCluster, plan: Plan | None = None) -> list[Record]:
    plan = plan or Plan(runnable=(CELL,), unplaceable={}, hosts={}, needs={CELL.id: needs(CELL)})
    places = Places(cells=Path("cells"), cache="cache")
    return [*filter(None, Schedule(cluster, {CELL.id: a_build()}, places).run(plan))]


def test_a_cell_whose_node_is_lost_is_tried_once_more() -> None:
    cluster = FakeCluster(script={CELL.id: [LOST_NODE]})

    [record] = run(cluster)

    assert record.verdict is Verdict.PASSED
    assert record.earlier == (LOST_NODE,)
    assert cluster.submitted == [CELL.id] * 2


def test_a_cell_that_loses_its_node_twice_was_not_run() -> None:
    [record] = run(FakeCluster(script={CELL.id: [LOST_NODE, LOST_NODE]}))

    assert record.verdict is Verdict.NOT_RUN
    assert record.judgement.reasons == (LOST_NODE,)


def test_a_killed_probe_is_tried_once_more_and_then_failed() -> None:
    [record] = run(FakeCluster(script={CELL.id: [KILLED, KILLED]}))

    assert (record.verdict, record.judgement.category) == (Verdict.FAILED, "worker_killed")
    assert record.earlier == ("worker_killed: ended by SIGKILL",)
    assert record.attempt is not None
    assert record.attempt.number == 2


def test_a_failure_that_would_come_again_is_not_tried_again() -> None:
    refused = an_attempt(a_failed_report("Unknown attention backend: 'X'"))
    cluster = FakeCluster(script={CELL.id: [refused]})

    [record] = run(cluster)

    assert record.judgement.category == "config_invalid"
    assert cluster.submitted == [CELL.id]


def test_a_cell_that_no_node_can_take_is_recorded_with_the_reason() -> None:
    plan = Plan(runnable=(), unplaceable={"mi300x/a/b/c": "no node has a mi300x"}, hosts={})

    [record] = run(FakeCluster(), plan)

    assert record.verdict is Verdict.NOT_RUN
    assert record.judgement.reasons == ("no node has a mi300x",)
