"""A cell that several nodes run together: one end of all its parts, told by the one to blame."""

import signal
from collections.abc import Callable
from dataclasses import replace

import pytest

from jobs.contract.asked import CellRequest, Deadlines
from jobs.contract.attempts import Attempt, Exit, Timeout
from jobs.contract.seen import ExceptionSeen, Failure, RankSeen
from jobs.contract.terms import Phase
from orchestrator.asked.cell_requests import cell_request
from orchestrator.concluded import causes
from orchestrator.concluded.classify import classify
from orchestrator.running.cluster import Ended, Node
from orchestrator.running.parts import AFTER_S, PartEnded, joined, led_at, parted
from tests.builders import a_build, a_cell, a_failed_report, a_report, an_attempt

RANKS = (RankSeen(rank=0, node="one"), RankSeen(rank=1, tensor=1, node="two"))
PARTED = an_attempt(a_report(ready=False), exit=Exit(parted=True), phase=Phase.COMPILE)
FINE = an_attempt(replace(a_report(tokens=(1,)), ranks=RANKS), memory_mib=900)
ECHO = "[pair.cc:553] Connection closed by peer [127.0.0.1]:48012"


def a_node(name: str) -> Node:
    return Node(
        id=f"id-{name}",
        name=name,
        address=f"{name}.cluster",
        vendor="cpu",
        card=None,
        arch=None,
        devices=0,
        cpus=2,
        memory_gib=8,
    )


ONE, TWO, THREE = (a_node(name) for name in ("one", "two", "three"))


def part(number: int, what: Attempt | str) -> PartEnded:
    error = what if isinstance(what, str) else None
    attempt = None if isinstance(what, str) else what
    end = Ended(cell_id="c", number=1, attempt=attempt, infrastructure_error=error)
    return PartEnded(node=(ONE, TWO, THREE)[number], number=number, end=end)


def ended(first: Attempt | str, second: Attempt | str) -> Ended:
    """The same, whichever of them came first, unless both failed with their nodes."""
    one, two = part(0, first), part(1, second)
    end = joined([one, two])
    assert joined([two, one]) == end
    return end


def attempt_of(end: Ended) -> Attempt:
    assert end.attempt is not None
    return end.attempt


def died(message: str) -> Attempt:
    """A part whose rank was ended by a signal, as its probe tells."""
    kind = "jobs.probe.children.ProcessEnded"
    chain = (
        ExceptionSeen(type=kind, message=message),
        ExceptionSeen(type="jobs.probe.seats.RankEnded", message="a rank of this node ended"),
    )
    failure = Failure(phase=Phase.GENERATE, chain=chain)
    return an_attempt(replace(a_report(ready=False), failure=failure))


def test_a_cell_is_done_when_the_part_that_leads_is_and_says_where_its_ranks_were() -> None:
    end = ended(FINE, replace(PARTED, memory_mib=1100))

    attempt = attempt_of(end)
    assert classify(attempt) is None
    assert attempt.report == FINE.report
    assert attempt.exit == Exit(code=0)
    assert attempt.placement.others == ("two",)
    assert attempt.memory_mib == 1100
    assert end.node_id == ONE.id


@pytest.mark.parametrize("lost", ["the worker died", died("VllmWorker-1 was ended by SIGTERM")])
def test_what_becomes_of_the_others_then_changes_nothing(lost: Attempt | str) -> None:
    assert classify(attempt_of(ended(FINE, lost))) is None


def test_a_part_that_failed_tells_why_the_others_were_ended() -> None:
    killed = replace(died("VllmWorker-1 was ended by SIGKILL"), log="two.log", log_tail="bye")
    leading = an_attempt(replace(a_report(), ranks=RANKS), exit=Exit(parted=True))

    end = ended(leading, killed)

    attempt = attempt_of(end)
    assert classify(attempt) == "worker_killed"
    assert causes.one_line(a_cell(), attempt, "worker_killed") == (
        "on two: ProcessEnded: VllmWorker-1 was ended by SIGKILL"
    )
    assert (attempt.log, attempt.log_tail) == ("two.log", "bye")
    assert attempt.report is not None
    assert attempt.report.ranks == RANKS
    assert end.node_id == TWO.id


def test_who_only_saw_the_connection_to_its_peer_close_is_not_to_blame() -> None:
    killed = died("VllmWorker-1 was ended by SIGKILL")

    attempt = attempt_of(ended(an_attempt(a_failed_report(ECHO)), killed))

    assert attempt.exit.node == "two"
    assert classify(attempt) == "worker_killed"


def test_of_two_that_failed_of_the_same_the_one_that_leads_tells() -> None:
    refused = an_attempt(a_failed_report("Unknown attention backend: 'X'"))

    end = ended(refused, replace(refused, log="two.log"))

    assert attempt_of(end).exit.node == "one"
    assert attempt_of(end).log == refused.log


def test_a_connection_that_closes_is_the_cause_where_nobody_knows_another() -> None:
    attempt = attempt_of(ended(PARTED, an_attempt(a_failed_report(ECHO))))

    assert attempt.exit.node == "two"
    assert attempt.report is not None
    assert attempt.report.failure is not None


@pytest.mark.parametrize(
    "how",
    [
        Exit(signal=signal.SIGKILL),
        Exit(timed_out=Timeout.PHASE, signal=signal.SIGTERM),
        Exit(host_lost=True),
        Exit(code=3),
    ],
)
def test_a_probe_that_died_without_a_report_is_to_blame(how: Exit) -> None:
    attempt = attempt_of(ended(PARTED, an_attempt(None, exit=how)))

    assert attempt.exit == replace(how, node="two")
    assert attempt.report is not None
    assert attempt.report.failure is None


@pytest.mark.parametrize("other", [PARTED, an_attempt(a_failed_report(ECHO))])
def test_a_node_that_is_lost_is_the_cause_of_what_the_others_saw(other: Attempt) -> None:
    end = ended(other, "the node died")

    assert end.attempt is None
    assert end.infrastructure_error == "on two: the node died"
    assert end.node_id == TWO.id


def test_of_several_that_are_lost_the_first_counts() -> None:
    end = joined([part(1, "it died"), part(0, "cancelled"), part(2, PARTED)])

    assert (end.infrastructure_error, end.node_id) == ("on two: it died", TWO.id)


def test_parts_that_lost_each_other_say_nothing_of_the_cell() -> None:
    end = ended(PARTED, PARTED)

    assert end.attempt is None
    assert end.infrastructure_error == "one and two lost each other"


@pytest.fixture
def asked() -> Callable[..., tuple[CellRequest, ...]]:
    def asked(*nodes: Node) -> tuple[CellRequest, ...]:
        phases_s = {Phase.IMPORT: 300.0, Phase.LOAD: 60.0}
        deadlines = Deadlines(attempt_s=600, quiet_s=90, phases_s=phases_s)
        cell = replace(a_cell(), deadlines=deadlines)
        request = cell_request(cell, a_build(), attempt=1, workdir="cells/c/1", cache="cache")
        return parted([request] * len(nodes), nodes, "secret")

    return asked


def test_each_part_knows_the_one_that_leads_and_has_files_of_its_own(
    asked: Callable[..., tuple[CellRequest, ...]],
) -> None:
    requests = asked(ONE, TWO, THREE)

    assert [request.part and request.part.node for request in requests] == ["one", "two", "three"]
    assert {request.part and request.part.leader for request in requests} == {"one.cluster"}
    assert len({request.workdir for request in requests}) == 3
    assert requests[0].workdir == "cells/c/1"
    last = led_at(requests[2], 4711).part
    assert last is not None
    assert (last.number, last.of, last.address, last.port) == (2, 3, "three.cluster", 4711)
    assert last.seat(20_063).port == 20_063


def test_deadlines_are_for_the_part_that_leads_to_miss(
    asked: Callable[..., tuple[CellRequest, ...]],
) -> None:
    first, second = (request.deadlines for request in asked(ONE, TWO))

    assert first.phases_s[Phase.LOAD] == 60.0
    assert second == Deadlines(
        attempt_s=first.attempt_s + AFTER_S,
        quiet_s=first.attempt_s + AFTER_S,
        phases_s={Phase.IMPORT: 300.0},
    )
