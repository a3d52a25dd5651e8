"""
What is left when something breaks: every finished cell keeps its record, every other ends
as one clear verdict or is run by the same command repeated, and no process stays behind.

Each test starts the real command line, a real Ray and real engines. An engine that hangs
does so for real: a patched build sleeps while it loads the model.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.driver import HANG, Driver, environment_of

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]

ONE = ("hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]")
HANGING = (
    "hardware=[cpu]",
    "model=[llama]",
    "backend=[auto]",
    "build=[v0_32,v0_32_strict_cpu]",
    f"build.v0_32_strict_cpu.patches=[{HANG}]",
)
"""One cell that passes, and one whose engine never gets past loading the model."""

GOOD, HUNG = "cpu/llama/auto/v0_32", "cpu/llama/auto/v0_32_strict_cpu"


def verdict(driver: Driver, cell_id: str) -> tuple[str, str | None]:
    judgement = driver.records()[cell_id]["judgement"]
    return judgement["verdict"], judgement["category"]


def one_passed_and_one_hangs(driver: Driver) -> int:
    """Wait for that, and return the probe that hangs."""
    driver.wait_for(f"passed  {GOOD}")
    return driver.probe_in("load")


def test_a_cell_that_hangs_is_ended_at_its_deadline_with_its_stacks(drive: StartDriver) -> None:
    driver = drive(*HANGING, "deadline_s=6")

    assert driver.wait() == 1
    assert verdict(driver, GOOD) == ("passed", None)
    assert verdict(driver, HUNG) == ("failed", "timeout")
    record = driver.records()[HUNG]
    assert record["attempt"]["phase"] == "load"
    assert "load_model" in Path(record["attempt"]["log"]).read_text()
    assert driver.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_stopped_run_keeps_what_finished_and_the_same_command_goes_on(
    drive: StartDriver, tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C, or a terminal that was closed."""
    words = (*HANGING, "deadline_s=15")
    driver = drive(*words)
    one_passed_and_one_hangs(driver)

    driver.process.send_signal(number)

    assert driver.wait() == 130
    assert driver.left() == []
    assert [*driver.records()] == [GOOD]
    assert "the same command goes on" in driver.output

    again = drive(*words)
    assert again.wait() == 1
    assert "1 of 2 cells have a verdict already" in again.output
    assert len([*tmp_path.glob("runs/*/run.json")]) == 1
    assert verdict(again, HUNG) == ("failed", "timeout")


def test_a_killed_driver_takes_everything_along_and_the_same_command_goes_on(
    drive: StartDriver, tmp_path: Path
) -> None:
    words = (*HANGING, "deadline_s=15")
    driver = drive(*words)
    one_passed_and_one_hangs(driver)

    driver.process.kill()
    driver.wait()

    assert driver.left() == []
    assert [*driver.records()] == [GOOD]

    again = drive(*words)
    assert again.wait() == 1
    assert len([*tmp_path.glob("runs/*/run.json")]) == 1
    assert verdict(again, GOOD) == ("passed", None)


def test_a_killed_probe_is_tried_once_more_and_is_then_a_failure(drive: StartDriver) -> None:
    driver = drive(*HANGING)
    first = one_passed_and_one_hangs(driver)
    os.kill(first, signal.SIGKILL)

    driver.until(lambda: driver.probe_in("load") != first, "no second attempt")
    os.kill(driver.probe_in("load"), signal.SIGKILL)

    assert driver.wait() == 1
    assert verdict(driver, HUNG) == ("failed", "worker_killed")
    assert driver.records()[HUNG]["earlier"] == ["worker_killed: ended by signal 9"]
    assert driver.left() == []


def test_a_killed_ray_worker_takes_its_probe_along_and_the_cell_is_tried_again(
    drive: StartDriver,
) -> None:
    driver = drive(*HANGING, "deadline_s=20")
    first = one_passed_and_one_hangs(driver)
    # Ray names a worker's process after the task that it runs.
    [worker] = driver.processes(f"ray::{HUNG}")

    os.kill(worker, signal.SIGKILL)

    driver.until(lambda: first not in driver.processes(), "the probe outlived its worker")
    assert driver.wait() == 1
    assert verdict(driver, HUNG) == ("failed", "timeout")
    assert len(driver.records()[HUNG]["earlier"]) == 1
    assert driver.left() == []


def test_a_stopped_probe_is_ended_at_its_deadline(drive: StartDriver) -> None:
    driver = drive(*HANGING, "deadline_s=8")
    os.kill(one_passed_and_one_hangs(driver), signal.SIGSTOP)

    assert driver.wait() == 1
    assert verdict(driver, HUNG) == ("failed", "timeout")
    assert driver.left() == []


def test_two_runs_at_once_share_builds_and_nothing_else(drive: StartDriver, tmp_path: Path) -> None:
    one, other = drive(*ONE), drive(*ONE)

    assert (one.wait(), other.wait()) == (0, 0)
    assert len([*tmp_path.glob("runs/*/records.jsonl")]) == 2
    assert one.left() == []
    assert other.left() == []


def in_a_small_file_system(folder: Path, kib: int) -> tuple[str, ...]:
    """Words that put a file system of *kib* at *folder*, for the command behind them only."""
    folder.mkdir()
    mount = f'mount -t tmpfs -o size={kib}k none {folder} && exec "$@"'
    return ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh")


def test_a_run_on_a_full_disk_says_so_and_stops(drive: StartDriver, tmp_path: Path) -> None:
    runs = tmp_path / "small"
    driver = drive(*ONE, f"runs={runs}", prefix=in_a_small_file_system(runs, kib=16))

    assert driver.wait() == 4
    assert "error: " in driver.output
    assert "No space left" in driver.output
    assert "Traceback" not in driver.output
    assert driver.left() == []


def test_a_read_only_run_directory_is_said_before_anything_starts(
    drive: StartDriver, tmp_path: Path
) -> None:
    runs = tmp_path / "small"
    prefix = in_a_small_file_system(runs, kib=64)
    read_only = (*prefix[:-2], prefix[-2].replace("size=", "ro,size="), prefix[-1])
    driver = drive(*ONE, f"runs={runs}", prefix=read_only)

    assert driver.wait() == 4
    assert "Read-only file system" in driver.output
    assert "starting Ray" not in driver.output


def test_nothing_that_is_started_reports_usage(drive: StartDriver) -> None:
    driver = drive(*HANGING, "deadline_s=30")
    probe = environment_of(one_passed_and_one_hangs(driver))
    [raylet] = driver.processes("raylet/raylet")

    assert environment_of(raylet)["RAY_USAGE_STATS_ENABLED"] == "0"
    assert {probe.get("VLLM_NO_USAGE_STATS"), probe.get("DO_NOT_TRACK")} == {"1"}
    assert probe["HF_HUB_DISABLE_TELEMETRY"] == "1"


def test_an_engine_sees_nothing_of_the_orchestrator(drive: StartDriver) -> None:
    driver = drive(*HANGING, "deadline_s=30")
    probe = environment_of(one_passed_and_one_hangs(driver))

    assert str(Path(sys.prefix)) not in probe["PYTHONPATH"]
    assert not [name for name in probe if name.startswith(("RAY_", "HYDRA_"))]
