"""Hosts that do not come up, that nothing may be forked from, and that are worn."""

import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jobs.contract.asked import CellRequest, Deadlines
from jobs.contract.terms import Isolation, Phase
from jobs.node import host_boot
from jobs.node.errors import NodeError
from jobs.node.run_cell import run_cell
from jobs.probe import fitness
from orchestrator.concluded.classify import classify
from orchestrator.running.cluster import read_attempt
from tests.unit.standin import (
    PLACEMENT,
    a_caller,
    a_raylet,
    a_request,
    eventually,
    run,
    runs,
    started_for,
)

pytestmark = pytest.mark.usefixtures("no_host_stays")

HANGS = "exec('def stuck(): time.sleep(600)'); stuck()"
FAKE_TORCH = """
import types
sys.modules["torch"] = torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)
"""
IMPATIENCE_S = 0.7
SHUTS_ITS_EARS = "signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals)); "


def test_a_host_that_hangs_while_it_imports_leaves_its_stacks(tmp_path: Path) -> None:
    attempt = run(_impatient(a_request(tmp_path, "", env={"STANDIN_PRELOAD": HANGS})))

    assert (attempt["exit"]["timed_out"], attempt["phase"]) == ("phase", "import")
    assert attempt["waiting"][0].endswith(" stuck")
    assert "in stuck" in attempt["log_tail"]
    assert "ended before a probe could be forked" not in attempt["log_tail"]
    assert started_for(tmp_path) == []


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("ends", ["sys.exit(0)", "os._exit(0)"])
def test_a_build_that_ends_its_interpreter_in_peace_is_broken_all_the_same(
    tmp_path: Path, isolation: Isolation, ends: str
) -> None:
    request = a_request(tmp_path, "", isolation=isolation, env={"STANDIN_PRELOAD": ends})

    attempt = read_attempt(run_cell(request, PLACEMENT))

    assert classify(attempt) == "build_broken"


def test_who_waits_in_vain_for_the_host_that_another_starts_starts_it_itself(
    tmp_path: Path,
) -> None:
    env = {"STANDIN_PRELOAD": HANGS}
    first, second = (_impatient(a_request(tmp_path, "", number=n, env=env)) for n in (1, 2))
    caller = a_caller(first)
    eventually(lambda: started_for(tmp_path) != [])

    attempt = run(second)

    assert (attempt["exit"]["timed_out"], attempt["phase"]) == ("phase", "import")
    assert attempt["seconds"] < 2 * IMPATIENCE_S + host_boot.HUNG[0].wait_s + 2
    assert caller.wait(20) == 0


@pytest.mark.parametrize("preload", [HANGS, SHUTS_ITS_EARS + HANGS])
def test_an_importing_host_goes_with_its_raylet(tmp_path: Path, preload: str) -> None:
    raylet = a_raylet(a_request(tmp_path, "", env={"STANDIN_PRELOAD": preload}))
    # The starter, the host and its guard.
    assert eventually(lambda: len(started_for(tmp_path)) == 3)
    [worker] = psutil.Process(raylet.pid).children()
    worker.kill()

    raylet.kill()
    raylet.wait()

    assert eventually(lambda: started_for(tmp_path) == [])


@pytest.mark.parametrize(
    ("preload", "obstacle"),
    [
        (
            "import threading; threading.Thread(target=time.sleep, args=[600], name='t9').start()",
            "a second thread of Python runs: MainThread, t9",
        ),
        (
            FAKE_TORCH,
            "torch has initialised its device",
        ),
    ],
)
def test_nothing_is_forked_from_a_host_that_is_not_alone(
    tmp_path: Path, preload: str, obstacle: str
) -> None:
    attempt = run(a_request(tmp_path, "report()", env={"STANDIN_PRELOAD": preload}))

    assert attempt["phase"] == "import"
    assert f"no cell can be forked from this process: {obstacle}" in attempt["log_tail"]
    assert attempt["report"] is None


def test_an_open_device_is_an_obstacle(tmp_path: Path) -> None:
    device = tmp_path / "nvidia0"
    with device.open("w") as file:
        found = fitness.obstacles([f"{tmp_path}/nvidia*"])

        assert f"{device} is open as {file.fileno()}" in found


@pytest.mark.parametrize(
    "limit", ["fitness.CELLS = 1", "fitness.AGE_S = 0", "fitness.GROWN_MIB = -1"]
)
def test_a_host_that_is_worn_ends_and_makes_room_for_a_fresh_one(
    tmp_path: Path, limit: str
) -> None:
    env = {"STANDIN_PRELOAD": f"from jobs.probe import fitness; {limit}"}
    first = run(a_request(tmp_path, "report(host=host)", env=env))["report"]["host"]
    assert eventually(lambda: not runs(first), within_s=host_boot.IDLE_S / 2)

    second = run(a_request(tmp_path, "report(host=host)", number=2, env=env))["report"]["host"]

    assert first != second


def test_a_host_that_lost_a_keeper_is_suspect(tmp_path: Path) -> None:
    code = "report(host=host); os.kill(keeper, signal.SIGKILL); time.sleep(9)"
    first = run(a_request(tmp_path, code))["report"]["host"]
    second = run(a_request(tmp_path, "report(host=host)", number=2))["report"]["host"]

    assert first != second
    assert eventually(lambda: not runs(first))


def test_what_is_new_is_a_sign_of_wear() -> None:
    began = fitness.state()
    reader, writer = os.pipe()
    try:
        assert fitness.wear(began, cells=0, expected_files=[reader, writer]) is None
        told = fitness.wear(began, cells=0, expected_files=[writer])
        assert told == f"it has files open that it did not have: [{reader}]"
    finally:
        os.close(reader)
        os.close(writer)
    older = replace(began, at=began.at - fitness.AGE_S - 1)
    assert "s old" in str(fitness.wear(older, cells=0, expected_files=[]))
    lighter = replace(began, memory_mib=began.memory_mib - fitness.GROWN_MIB - 1)
    assert "it has grown by" in str(fitness.wear(lighter, cells=0, expected_files=[]))
    alone = replace(began, threads=began.threads - 1)
    assert "threads and began with" in str(fitness.wear(alone, cells=0, expected_files=[]))


def test_an_interpreter_that_may_not_run_is_the_nodes_fault(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.touch()

    with pytest.raises(NodeError, match=r"can't be started: .*Permission denied"):
        run(a_request(tmp_path, "", python=str(python)))


def _impatient(request: CellRequest) -> CellRequest:
    phases_s = {Phase.IMPORT: IMPATIENCE_S}
    return replace(request, deadlines=Deadlines(attempt_s=9.0, quiet_s=9.0, phases_s=phases_s))
