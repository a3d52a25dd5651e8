"""
What is left when something breaks: every finished cell keeps its record, every other ends
as one clear verdict or is run by the same command repeated, and no process stays behind.

Each test starts the real command line, a real Ray and real engines. An engine that hangs
does so for real: a patched build sleeps while it loads the model. docs/faults.md has the
table of which these tests are rows.
"""

import ipaddress
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.ray.conftest import StartDriver
from tests.ray.driver import GO, HANG, Driver, environment_of, parent

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]

ONE = ("hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]")
PATCHED = ("build=[v0_32_strict_cpu]", f"build.v0_32_strict_cpu.patches=[{HANG}]")
HANGING = ("hardware=[cpu]", "model=[llama,gemma3]", "backend=[auto]", *PATCHED)
"""One cell that passes, and one whose engine does not get past loading the model."""

FOUR_HANGING = (
    "hardware=[cpu]",
    "model=[gemma3,mixtral]",
    "backend=[auto,cpu_attn]",
    "cluster.cells_at_once=2",
    "attempts=5",
    *PATCHED,
)

GOOD, HUNG = "cpu/llama/auto/v0_32_strict_cpu", "cpu/gemma3/auto/v0_32_strict_cpu"

LOOPBACK = ipaddress.ip_address("127.0.0.1")

Fault = Callable[[Driver], None]


def verdict(driver: Driver, cell_id: str) -> tuple[str, str | None]:
    judgement = driver.records()[cell_id]["judgement"]
    return judgement["verdict"], judgement["category"]


def terminal(driver: Driver) -> list[str]:
    """The cell of each record that says how it ended, in the order of writing."""
    lines = driver.lines()
    return [line["cell_id"] for line in lines if line["judgement"]["verdict"] != "not run"]


def one_passed_and_one_hangs(driver: Driver) -> int:
    """Wait for that, and return the probe that hangs."""
    driver.wait_for(f"passed  {GOOD}")
    return driver.probe_in("load", HUNG)


def send(number: signal.Signals) -> Fault:
    return lambda driver: driver.process.send_signal(number)


def send_twice(driver: Driver) -> None:
    driver.process.send_signal(signal.SIGINT)
    time.sleep(0.6)
    driver.process.send_signal(signal.SIGINT)


def kill(part: str) -> Fault:
    return lambda driver: hit(signal.SIGKILL, driver, part)


def stop(part: str) -> Fault:
    return lambda driver: hit(signal.SIGSTOP, driver, part)


def hit(number: signal.Signals, driver: Driver, part: str) -> None:
    [found] = driver.processes(part)
    os.kill(found, number)


def kill_run(driver: Driver) -> None:
    os.kill(driver.run, signal.SIGKILL)


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        pytest.param(
            send(signal.SIGINT), 130, "stopped by SIGINT", id="ctrl-c", marks=pytest.mark.long
        ),
        pytest.param(send_twice, 130, "", id="ctrl-c-twice"),
        pytest.param(send(signal.SIGHUP), 130, "SIGHUP", id="hang-up", marks=pytest.mark.long),
        pytest.param(kill("raylet/raylet"), 4, "lost its raylet", id="raylet"),
        pytest.param(
            kill("gcs_server"), 4, "lost its gcs_server", id="head", marks=pytest.mark.long
        ),
        pytest.param(stop("raylet/raylet"), 4, "lost its raylet", id="stopped-raylet"),
        pytest.param(
            stop("gcs_server"), 4, "lost its gcs_server", id="stopped-head", marks=pytest.mark.long
        ),
        pytest.param(kill_run, 4, "SIGKILL", id="driver", marks=pytest.mark.long),
        pytest.param(send(signal.SIGKILL), -9, "", id="supervisor", marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_broken_off_keeps_what_finished_and_the_same_command_goes_on(
    drive: StartDriver, tmp_path: Path, fault: Fault, code: int, said: str
) -> None:
    driver = drive(*HANGING)
    one_passed_and_one_hangs(driver)

    fault(driver)

    assert driver.wait() == code
    assert driver.left(patience_s=20 if code < 0 else 1) == []
    assert [*driver.records()] == [GOOD]
    assert said in driver.output
    assert "Traceback" not in driver.output
    assert "state-dump" not in driver.output

    driver.go()
    again = drive(*HANGING)
    assert again.wait() == 0
    assert len([*tmp_path.glob("runs/*/run.json")]) == 1
    assert verdict(again, HUNG) == ("passed", None)
    assert [record["cell_id"] for record in again.lines()] == [GOOD, HUNG]
    assert again.left() == []


def test_sigterm_while_ray_is_starting_leaves_nothing(drive: StartDriver) -> None:
    driver = drive(*ONE)
    driver.until(lambda: driver.processes("gcs_server"), "Ray does not start")

    driver.process.terminate()

    assert driver.wait() == 130
    assert driver.left() == []
    assert "Traceback" not in driver.output


def test_what_is_killed_below_a_run_costs_an_attempt_of_the_cell_in_flight(
    drive: StartDriver,
) -> None:
    """The cell itself, its keeper, its host and its Ray worker, one after the other."""
    driver = drive(*FOUR_HANGING)
    killed: set[int] = set()

    def fresh_probe() -> int:
        driver.until(lambda: {*driver.probes_in("load")} - killed, "no further probe")
        return next(iter({*driver.probes_in("load")} - killed))

    def worker_of(probe: int) -> int:
        cell_id = driver.cell_of(probe)
        [worker] = driver.processes(f"ray::{cell_id}")
        return worker

    for victim_of in (int, parent, lambda probe: parent(parent(probe)), worker_of):
        probe = fresh_probe()
        os.kill(victim_of(probe), signal.SIGKILL)
        killed.add(probe)
        driver.until(lambda: probe not in driver.processes(), "the probe stays")  # noqa: B023
    driver.go()

    assert driver.wait() == 0
    records = driver.lines()
    assert [record["judgement"]["verdict"] for record in records] == ["passed"] * 4
    assert sum(len(record["earlier"]) for record in records) >= 4
    assert driver.left() == []


@pytest.mark.long
def test_a_probe_that_is_killed_again_and_again_has_failed(drive: StartDriver) -> None:
    driver = drive(*HANGING)
    first = one_passed_and_one_hangs(driver)
    os.kill(first, signal.SIGKILL)

    driver.until(lambda: driver.probe_in("load") != first, "no second attempt")
    os.kill(driver.probe_in("load"), signal.SIGKILL)

    assert driver.wait() == 1
    assert verdict(driver, HUNG) == ("failed", "worker_killed")
    assert len(driver.records()[HUNG]["earlier"]) == 1
    assert driver.left() == []


def test_what_is_stopped_and_continued_goes_on_and_a_stopped_cell_meets_its_deadline(
    drive: StartDriver,
) -> None:
    driver = drive(*HANGING, "deadline_s=12")
    probe = one_passed_and_one_hangs(driver)
    [worker] = driver.processes(f"ray::{HUNG}")
    [raylet] = driver.processes("raylet/raylet")
    [head] = driver.processes("gcs_server")
    for pid in (driver.run, worker, raylet, head):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)
    os.kill(probe, signal.SIGSTOP)

    assert driver.wait() == 1
    assert verdict(driver, HUNG) == ("failed", "timeout")
    assert driver.left() == []


@pytest.mark.long
def test_a_ray_worker_that_is_stopped_for_good_is_killed_when_its_cell_is_overdue(
    drive: StartDriver,
) -> None:
    driver = drive(*HANGING, "deadline_s=6", "deadlines={import: 30}")
    one_passed_and_one_hangs(driver)
    [worker] = driver.processes(f"ray::{HUNG}")
    os.kill(worker, signal.SIGSTOP)

    driver.wait_for(f"{HUNG} is long past its deadline")
    driver.go()

    assert driver.wait() == 0
    assert len(driver.records()[HUNG]["earlier"]) == 1
    assert driver.left() == []


@pytest.mark.long
def test_a_ray_worker_that_is_stopped_while_it_makes_a_build_is_killed(
    drive: StartDriver, tmp_path: Path
) -> None:
    # A build of its own, so that there is something to make.
    patch = tmp_path / "other.diff"
    patch.write_text(HANG.read_text().replace(GO, f"{GO}_OTHER"))
    patched = ("build=[v0_32_strict_cpu]", f"build.v0_32_strict_cpu.patches=[{patch}]")
    cache = f"cache={tmp_path / 'cache'}"
    driver = drive(*ONE[:-1], *patched, cache, "deadlines={provision: 5}")
    driver.patience_s = 300
    driver.until(lambda: driver.processes("ray::provision"), "no provisioning")

    hit(signal.SIGSTOP, driver, "ray::provision")

    assert driver.wait() == 4
    assert "its Ray worker is silent, long past its deadline" in driver.output
    assert driver.left() == []


def test_nothing_of_a_run_listens_to_other_machines_and_its_ray_leaves_no_folder(
    drive: StartDriver,
) -> None:
    driver = drive(*HANGING)
    one_passed_and_one_hangs(driver)
    # A killed Ray may have left one with the same process id, long ago.
    session = max(Path("/tmp/ray").glob(f"session_*_{driver.run}"))
    heard_at = {
        socket.laddr.ip
        for pid in driver.processes()
        for socket in psutil.Process(pid).net_connections("tcp")
        if socket.status == psutil.CONN_LISTEN
    }
    driver.go()

    assert driver.wait() == 0
    assert {ipaddress.ip_address(ip.removeprefix("::ffff:")) for ip in heard_at} == {LOOPBACK}
    assert not session.exists()


def test_two_runs_at_once_share_builds_and_nothing_else(drive: StartDriver, tmp_path: Path) -> None:
    one, other = drive(*ONE), drive(*ONE)

    assert (one.wait(), other.wait()) == (0, 0)
    assert len([*tmp_path.glob("runs/*/records.jsonl")]) == 2
    assert one.left() == []
    assert other.left() == []


def test_an_engine_sees_nothing_of_the_orchestrator_and_reports_no_usage(
    drive: StartDriver,
) -> None:
    driver = drive(*HANGING, "deadline_s=30")
    probe = environment_of(one_passed_and_one_hangs(driver))
    [raylet] = driver.processes("raylet/raylet")

    assert str(Path(sys.prefix)) not in probe["PYTHONPATH"]
    assert not [name for name in probe if name.startswith(("RAY_", "HYDRA_"))]
    assert {probe.get("VLLM_NO_USAGE_STATS"), probe.get("DO_NOT_TRACK")} == {"1"}
    assert probe["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert environment_of(raylet)["RAY_USAGE_STATS_ENABLED"] == "0"
