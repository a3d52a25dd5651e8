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


def test_a_cell_that_hangs_is_ended_at_its_deadline_even_if_the_clock_jumps(
    drive: StartDriver,
) -> None:
    path = os.pathsep.join([str(CLOCK), os.environ.get("PYTHONPATH", "")])
    driver = drive(*HANGING, "deadline_s=6", environment={"PYTHONPATH": path})

    assert driver.wait() == 1
    assert verdict(driver, GOOD) == ("passed", None)
    assert verdict(driver, HUNG) == ("failed", "timeout")
    assert 0 < driver.records()[GOOD]["attempt"]["seconds"] < 60
    hung = driver.records()[HUNG]["attempt"]
    assert 6 <= hung["seconds"] < 60
    assert hung["phase"] == "load"
    assert "load_model" in Path(hung["log"]).read_text()
    assert driver.left() == []
