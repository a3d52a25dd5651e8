"""How processes of the engine ended that can't say it themselves."""

import faulthandler
import multiprocessing
import os
import signal
from collections.abc import Callable

import pytest

from jobs.probe import children

FORK = multiprocessing.get_context("fork")


def die_of(number: signal.Signals) -> None:
    # pytest's would show a crash that is meant.
    faulthandler.disable()
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda: die_of(signal.SIGSEGV), "was ended by SIGSEGV"),
        (lambda: die_of(signal.SIGKILL), "was ended by SIGKILL"),
        (lambda: os._exit(3), "exited with code 3"),
    ],
)
def test_the_end_of_a_process_is_told_by_the_one_that_started_it(
    end: Callable[[], None], told: str
) -> None:
    dead = ended(end)

    [seen] = children.ended()

    assert seen.type == "jobs.probe.children.ProcessEnded"
    assert seen.message == f"{dead.name} {told}"


def test_a_process_that_crashed_counts_more_than_those_that_were_ended_then() -> None:
    others = [ended(lambda: die_of(signal.SIGTERM)) for _ in range(2)]
    crashed = ended(lambda: die_of(signal.SIGBUS))

    [seen] = children.ended()

    assert seen.message == f"{crashed.name} was ended by SIGBUS"
    assert len(others) == 2


def test_processes_that_ended_in_peace_or_still_run_are_no_cause() -> None:
    at_peace = ended(lambda: os._exit(0))

    assert children.ended() == ()
    assert at_peace.exitcode == 0


def ended(end: Callable[[], None]) -> multiprocessing.process.BaseProcess:
    process = FORK.Process(target=end)
    process.start()
    process.join()
    return process
