"""Two attempts that want the same folder, as when a driver is lost and the run goes on."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.contract.asked import Home
from jobs.node import occupancy
from jobs.node.errors import NodeError
from orchestrator.kept.run_directory import RunDirectory

WORKDIR = "/runs/a/cells/cpu/llama/auto/v0_32/1"
AT_WORK = """
import sys, time
from jobs.contract.asked import Home
from jobs.node import occupancy
occupancy.LOOK_S = 0.05
with occupancy.held(Home(folder=sys.argv[1], witness=sys.argv[2]), sys.argv[3]):
    print("at work", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupancy, "AFTERMATH_S", 0.02)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return RunDirectory(tmp_path).home()


@contextmanager
def an_attempt(home: Home) -> Iterator[subprocess.Popen[str]]:
    words = (sys.executable, "-c", AT_WORK, home.folder, home.witness, WORKDIR)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        yield process
        process.kill()


def test_an_attempt_waits_for_the_one_before_it(home: Home) -> None:
    order = []

    def another() -> None:
        with occupancy.held(home, WORKDIR):
            order.append("another")

    with occupancy.held(home, WORKDIR):
        waiting = threading.Thread(target=another)
        waiting.start()
        time.sleep(0.2)
        order.append("one")
    waiting.join(10)

    assert order == ["one", "another"]
    assert not [*Path(home.folder, occupancy.FOLDER).iterdir()]


def test_attempts_of_other_cells_do_not_wait(home: Home) -> None:
    with occupancy.held(home, WORKDIR), occupancy.held(home, f"{WORKDIR}.part2"):
        pass


def test_a_worker_that_was_killed_holds_nothing(home: Home) -> None:
    with an_attempt(home) as process:
        process.kill()

        with occupancy.held(home, WORKDIR):
            pass


def test_an_attempt_whose_run_has_another_driver_ends(home: Home, tmp_path: Path) -> None:
    with an_attempt(home) as process:
        now = RunDirectory(tmp_path).home()

        with occupancy.held(now, WORKDIR):
            assert process.wait(10) == -signal.SIGKILL


def test_one_that_does_not_end_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupancy, "PATIENCE_S", 0.1)

    with (
        an_attempt(home),
        pytest.raises(NodeError, match=f"{WORKDIR}: an earlier attempt is still at work"),
        occupancy.held(home, WORKDIR),
    ):
        pass


def test_a_disk_that_is_away_is_no_other_driver(home: Home, tmp_path: Path) -> None:
    assert not occupancy.has_another_driver(home)

    tmp_path.rename(tmp_path.with_name("elsewhere"))

    assert not occupancy.has_another_driver(home)
