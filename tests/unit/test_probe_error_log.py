"""What the other processes of an engine died of."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.contract.terms import Phase
from jobs.probe import environment, error_log, observers

WORKER = """
import logging.config
logging.config.dictConfig({
    "version": 1,
    "handlers": {"errors": {"class": "jobs.probe.error_log.ErrorLog"}},
    "loggers": {"vllm": {"handlers": ["errors"], "propagate": False}},
})
log = logging.getLogger("vllm.worker")

def load_model():
    raise ValueError("no such kernel")

try:
    open("/optional/cache")
except OSError:
    log.exception("the optional cache is not there, going on without it")
try:
    try:
        load_model()
    except ValueError as cause:
        raise RuntimeError("the worker could not start") from cause
except RuntimeError:
    log.exception("WorkerProc failed to start.")
log.error("no exception at all")
"""

SLEEPER = """
import time
from jobs.probe import error_log
error_log.arm_stack_dumps()
def waiting_for_ever():
    print("armed", flush=True)
    time.sleep(60)
waiting_for_ever()
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        cwd=environment.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_the_exception_that_ended_another_process_is_found_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / error_log.ERRORS).write_text('{"pid": 1, "pro\n[]\n')

    subprocess.run(
        [sys.executable, "-c", WORKER],
        cwd=environment.ROOT,
        env={**os.environ, environment.PROBE_FOLDER: str(tmp_path)},
        check=True,
        timeout=30,
    )

    error = error_log.first_elsewhere(tmp_path)
    assert error is not None
    assert [seen.message for seen in error.chain] == [
        "the worker could not start",
        "no such kernel",
    ]
    assert error.process == "MainProcess"
    assert observers.phase_of(error.functions) is Phase.LOAD


def test_without_other_processes_there_is_nothing_to_find(tmp_path: Path) -> None:
    assert error_log.first_elsewhere(tmp_path) is None


def test_a_process_that_hangs_says_where_when_it_is_asked(sleeper: subprocess.Popen[str]) -> None:
    assert sleeper.stdout is not None
    assert sleeper.stderr is not None
    assert sleeper.stdout.readline() == "armed\n"

    sleeper.send_signal(signal.SIGUSR1)

    lines = iter(sleeper.stderr.readline, "")
    assert any("waiting_for_ever" in line for line in lines)
