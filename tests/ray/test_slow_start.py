"""A Ray that does not get ready in the half minute that it gives itself."""

import os
import signal

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.driver import Driver

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

IMPORTS = (
    "hardware=[cpu]",
    "model=[llama]",
    "backend=[auto]",
    "build=[v0_32]",
    "suite.check=import",
)


def test_a_ray_that_is_too_slow_to_start_is_started_once_more(drive: StartDriver) -> None:
    driver = drive(*IMPORTS)
    slow = _stopped_raylet(driver)
    of_first = {*driver.processes()} - {driver.run}

    driver.wait_for("started once more")
    _raylet(driver, other_than=slow)
    assert of_first.isdisjoint(driver.processes())
    assert driver.wait() == 0
    assert [line["judgement"]["verdict"] for line in driver.lines()] == ["passed"]
    assert driver.left() == []


@pytest.mark.long
def test_a_ray_that_is_too_slow_twice_is_an_error(drive: StartDriver) -> None:
    driver = drive(*IMPORTS)
    slow = _stopped_raylet(driver)
    driver.wait_for("started once more")
    _stopped_raylet(driver, other_than=slow)

    assert driver.wait() == 4
    assert "Ray on this machine can't be reached or started" in driver.output
    assert "Traceback" not in driver.output
    assert driver.left() == []


@pytest.mark.long
def test_a_head_that_is_stopped_at_the_start_does_not_hold_up_the_run(drive: StartDriver) -> None:
    """Whether Ray comes to a second try depends on how far it had come."""
    driver = drive(*IMPORTS)
    driver.until(lambda: driver.processes("gcs_server"), "no head")
    [head] = driver.processes("gcs_server")
    os.kill(head, signal.SIGSTOP)

    assert driver.wait() in {0, 4}
    assert "Traceback" not in driver.output
    assert driver.left() == []


def _stopped_raylet(driver: Driver, other_than: int | None = None) -> int:
    """It waits for its agents, which take seconds, before it tells that it is there."""
    raylet = _raylet(driver, other_than)
    os.kill(raylet, signal.SIGSTOP)
    return raylet


def _raylet(driver: Driver, other_than: int | None) -> int:
    def found() -> list[int]:
        return [pid for pid in driver.processes("raylet/raylet") if pid != other_than]

    driver.until(found, "no raylet")
    return found()[0]
