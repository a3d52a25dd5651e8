"""What a failure is told by: one line of cause, and the few lines that show it."""

import signal
from dataclasses import replace

import pytest

from jobs.contract.asked import Deadlines
from jobs.contract.attempts import Attempt, Exit, Timeout
from jobs.contract.builds import Patch
from jobs.contract.terms import Phase
from orchestrator.concluded import causes
from tests.builders import a_cell, a_failed_report, a_report, an_attempt

WAITING = ("threading.py:320 wait", "vllm/v1/x.py:7 f", "vllm/entrypoints/llm.py:1 g")


def line(attempt: Attempt, category: str = "internal_error") -> str:
    deadlines = Deadlines(attempt_s=600, phases_s={Phase.LOAD: 60}, quiet_s=90)
    return causes.one_line(replace(a_cell(), deadlines=deadlines), attempt, category)


@pytest.mark.parametrize(
    ("missed", "told"),
    [
        (Timeout.PHASE, "timed out in phase load (its deadline of 60 s), in vllm/v1/x.py:7 f"),
        (Timeout.QUIET, "no sign of life for 90 s in phase load, in vllm/v1/x.py:7 f"),
        (Timeout.ATTEMPT, "timed out in phase load (600 s for all phases), in vllm/v1/x.py:7 f"),
    ],
)
def test_a_cell_out_of_time_names_the_deadline_and_where_vllm_waited(
    missed: Timeout, told: str
) -> None:
    attempt = an_attempt(exit=Exit(timed_out=missed), phase=Phase.LOAD, waiting=WAITING)

    assert line(attempt, "timeout") == told
    assert causes.excerpt(attempt) == WAITING


def test_an_exception_is_told_in_one_line_and_shown_with_where_it_was_raised() -> None:
    attempt = an_attempt(a_failed_report("no\nsuch\nthing"))

    assert line(attempt) == "ValueError: no such thing"
    assert causes.excerpt(attempt) == ("at vllm/x.py:1 f", "no", "such", "thing")


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (Exit(signal=signal.SIGSEGV), "ended by SIGSEGV"),
        (
            Exit(signal=signal.SIGKILL, out_of_memory=True),
            "the kernel killed it for want of memory",
        ),
        (Exit(host_lost=True), "the host that it was forked from went away"),
        (Exit(code=1), "ValueError: why"),
        (Exit(code=3), "exit code 3: the end"),
        (Exit(code=0), "exit code 0: the end"),
    ],
)
def test_without_an_exception_the_end_is_told(ended: Exit, told: str) -> None:
    assert line(an_attempt(exit=ended, log_tail="ValueError: why\nthe end")) == told


def test_the_log_is_shown_from_where_python_says_that_it_crashed() -> None:
    tail = "before\nFatal Python error: Aborted\n\nThread 1:\n  File x"

    shown = causes.excerpt(an_attempt(exit=Exit(signal=signal.SIGABRT), log_tail=tail))

    assert shown == ("Fatal Python error: Aborted", "Thread 1:", "  File x")


def test_an_exception_out_of_a_patched_file_names_the_patch() -> None:
    cell = a_cell()
    patch = Patch(name="mine.diff", text="--- a/vllm/x.py\n+++ b/vllm/x.py\n")
    cell = replace(cell, build=replace(cell.build, patches=(patch,)))

    told = causes.one_line(cell, an_attempt(a_failed_report("oh")), "patch_raised")

    assert told == "ValueError: oh (in a file that mine.diff changed)"


def test_a_report_that_was_lost_is_told_by_what_the_node_says_of_it() -> None:
    attempt = an_attempt(log_tail="ValueError: survived\nreport.json is not a report: torn")

    assert line(attempt, "report_lost") == "exit code 0: report.json is not a report: torn"
    assert causes.excerpt(an_attempt(a_report())) == ()
