"""Attempts, retries, and what becomes a record."""

import signal
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from jobs.contract.attempts import Exit
from jobs.contract.seen import ExceptionSeen, Failure
from jobs.contract.terms import Check, Isolation, Phase
from orchestrator.asked.cells import Cell
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.running.cluster import Builds, Ended, Needs, Node, this_machine
from orchestrator.running.forecast import Work
from orchestrator.running.plan import Plan, build_key, needs
from orchestrator.running.schedule import Limits, Places, Schedule
from tests.builders import a_build, a_cell, a_failed_report, a_report, an_attempt
from tests.fakes import LOST_NODE, FakeCluster

CELL = a_cell()
KILLED = an_attempt(None, exit=Exit(signal=signal.SIGKILL))


def a_plan(cell: Cell) -> Plan:
    return Plan(runnable=(cell,), unplaceable={}, hosts={}, needs={cell.id: needs(cell)})


def run(cluster: FakeCluster, plan: Plan | None = None) -> list[Record]:
    plan = plan or a_plan(CELL)
    schedule = a_schedule(cluster, Path("cells"))
    work = {cell.id: Work(seconds=1.0) for cell in plan.runnable}
    return [record for records in schedule.run(plan, work) for record in records]


def a_schedule(cluster: FakeCluster, cells: Path) -> Schedule:
    nodes = cluster.nodes()
    builds = Builds(ready={node.id: {build_key(CELL): a_build()} for node in nodes})
    return Schedule(cluster, nodes, builds, Places(cells=cells, cache="cache"), print)


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


HOST_LOST = an_attempt(None, exit=Exit(host_lost=True))


def test_a_cell_that_was_lost_with_a_host_of_others_passes_in_a_host_of_its_own() -> None:
    cluster = FakeCluster(script={CELL.id: [HOST_LOST]})

    [record] = run(cluster)

    assert record.verdict is Verdict.PASSED
    assert record.earlier == ("host_lost: the host that it was forked from went away",)
    assert cluster.isolations == [Isolation.WARM, Isolation.COLD]


def test_a_cell_that_ends_its_own_host_too_is_the_cause_itself() -> None:
    cell = replace(CELL, attempts=9)
    lost_its_own = replace(HOST_LOST, isolation=Isolation.COLD)
    cluster = FakeCluster(script={CELL.id: [HOST_LOST, *[lost_its_own] * 7]})

    [record] = run(cluster, a_plan(cell))

    assert (record.verdict, record.judgement.category) == (Verdict.FAILED, "ends_its_host")
    assert cluster.isolations == [Isolation.WARM, Isolation.COLD, Isolation.COLD]


def test_what_passes_by_itself_is_tried_as_often_as_the_cell_has_attempts() -> None:
    busy = an_attempt(a_failed_report("[Errno 98] Address already in use", type_="OSError"))
    cluster = FakeCluster(script={CELL.id: [busy] * 3})

    [record] = run(cluster, a_plan(replace(CELL, attempts=4)))

    assert record.verdict is Verdict.PASSED
    assert cluster.submitted == [CELL.id] * 4


def test_what_nothing_explains_is_not_tried_for_ever() -> None:
    cancelled = ExceptionSeen(type="RuntimeError", message="cancelled")
    failure = Failure(phase=Phase.LOAD, chain=(cancelled,))
    died = an_attempt(a_report(ready=False, failure=failure))
    cluster = FakeCluster(script={CELL.id: [died] * 9})

    [record] = run(cluster, a_plan(replace(CELL, attempts=9)))

    assert record.judgement.category == "unknown"
    assert cluster.submitted == [CELL.id] * 2


def test_a_failure_that_would_come_again_is_not_tried_again() -> None:
    refused = an_attempt(a_failed_report("Unknown attention backend: 'X'"))
    cluster = FakeCluster(script={CELL.id: [refused]})

    [record] = run(cluster)

    assert record.judgement.category == "config_invalid"
    assert cluster.submitted == [CELL.id]


def test_an_attempt_that_waits_looks_as_if_no_node_had_ever_begun_with_it(tmp_path: Path) -> None:
    request = tmp_path / CELL.id / "1" / "request.json"
    request.mkdir(parents=True)

    [*_] = a_schedule(FakeCluster(), tmp_path).run(a_plan(CELL), {CELL.id: Work(seconds=1.0)})

    assert not request.exists()


def test_a_cell_that_no_node_can_take_is_recorded_with_the_reason() -> None:
    plan = Plan(runnable=(), unplaceable={"mi300x/a/b/c": "no node has a mi300x"}, hosts={})

    [record] = run(FakeCluster(), plan)

    assert record.verdict is Verdict.NOT_RUN
    assert record.judgement.reasons == ("no node has a mi300x",)


def test_what_has_not_begun_when_the_time_is_up_is_left_out() -> None:
    def reason(begun: AbstractSet[str]) -> str:
        return f"{len(begun)} have begun"

    limits = Limits(begin_s=0.0, left_out=reason)
    schedule = a_schedule(FakeCluster(), Path("cells"))

    records = [*schedule.run(a_plan(CELL), {CELL.id: Work(seconds=1.0)}, limits)]

    [record] = [record for part in records for record in part]
    assert record.judgement.reasons == ("0 have begun",)


def three_nodes() -> tuple[Node, ...]:
    return tuple(replace(this_machine(), id=name, name=name, cpus=2) for name in "abc")


BOTH = a_cell(devices=2, engine_args={"nnodes": 2}, attempts=3)


def test_every_node_of_a_cell_is_asked_at_once() -> None:
    cluster = FakeCluster(there=three_nodes())

    [record] = run(cluster, a_plan(BOTH))

    assert record.verdict is Verdict.PASSED
    [where] = cluster.places
    assert len({*where}) == 2


def test_of_several_nodes_the_one_that_is_to_blame_is_avoided() -> None:
    lost = Ended(cell_id=BOTH.id, number=1, infrastructure_error="on b: it died", node_id="b")
    cluster = FakeCluster(there=three_nodes(), script={BOTH.id: [lost, lost]})

    [record] = run(cluster, a_plan(BOTH))

    assert record.earlier == ("on b: it died",) * 2
    assert all({*where} == {"a", "c"} for where in cluster.places[1:])


def test_vllm_is_imported_on_one_node_of_several() -> None:
    cluster = FakeCluster(there=three_nodes())

    [*_] = run(cluster, a_plan(replace(BOTH, check=Check.IMPORT)))

    [where] = cluster.places
    assert len(where) == 1


def test_a_cell_that_lacks_a_node_waits_for_one_to_join() -> None:
    cluster = FakeCluster(joining=[replace(this_machine(), id="late", name="late", cpus=64)])
    plan = a_plan(CELL)
    plan = replace(plan, needs={CELL.id: replace(plan.needs[CELL.id], cpus=64)})
    schedule = a_schedule(cluster, Path("cells"))

    records = [*schedule.run(plan, {CELL.id: Work(seconds=1.0)}, Limits(wait_s=60.0))]

    [record] = [record for part in records for record in part]
    assert record.verdict is Verdict.PASSED
    assert not cluster.wished_for


def test_a_node_is_wished_for_as_long_as_cells_wait_for_it() -> None:
    wished_for: list[int] = []

    class Watched(FakeCluster):
        def wait_for(self, needs: Sequence[Needs]) -> None:
            wished_for.append(len(needs))

    plan = a_plan(CELL)
    plan = replace(plan, needs={CELL.id: replace(plan.needs[CELL.id], cpus=9999)})
    plan = replace(plan, missing={CELL.id: "no node has 9999 CPUs"})
    schedule = a_schedule(Watched(), Path("cells"))

    records = [*schedule.run(plan, {CELL.id: Work(seconds=1.0)}, Limits(wait_s=0.01))]

    [record] = [record for part in records for record in part]
    assert record.judgement.reasons == ("no node has 9999 CPUs, and none joined within 0.01 s",)
    assert wished_for[0] == 1
    assert wished_for[-1] == 0
