"""
A clock that jumps by hours. The kernel's own can't be set here, nor should it: Python's is
replaced in the driver and in all of Ray.
"""

import os
from pathlib import Path

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.test_faults import GOOD, HANGING, HUNG, verdict

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]

CLOCK = Path(__file__).parent / "jumping_clock"


def test_durations_and_deadlines_do_not_follow_a_clock_that_jumps(drive: StartDriver) -> None:
    path = os.pathsep.join([str(CLOCK), os.environ.get("PYTHONPATH", "")])
    driver = drive(*HANGING, "deadline_s=6", environment={"PYTHONPATH": path})

    assert driver.wait() == 1
    assert verdict(driver, GOOD) == ("passed", None)
    assert verdict(driver, HUNG) == ("failed", "timeout")
    assert 6 <= driver.records()[HUNG]["attempt"]["seconds"] < 60
    assert 0 < driver.records()[GOOD]["attempt"]["seconds"] < 60
    assert driver.left() == []
