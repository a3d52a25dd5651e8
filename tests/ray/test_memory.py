"""A node that runs out of memory: the kernel ends a cell, or Ray ends its worker."""

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.memory_limit import memory_limit
from tests.ray.test_faults import GOOD, HANGING, HUNG, ONE, one_passed_and_one_hangs, verdict

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.long, pytest.mark.timeout(400)]

FULL = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
"""For Ray every node is full then."""


def test_a_cell_that_the_kernel_ends_for_want_of_memory_is_told_as_that(
    drive: StartDriver,
) -> None:
    driver = drive(*HANGING, "attempts=1")
    probe = one_passed_and_one_hangs(driver)

    with memory_limit(probe, 2**20):
        driver.go()
        assert driver.wait() == 1

    assert verdict(driver, GOOD) == ("passed", None)
    assert verdict(driver, HUNG) == ("failed", "oom_host")
    assert driver.left() == []


def test_a_worker_that_ray_ends_for_want_of_memory_is_told_in_ray_s_words(
    drive: StartDriver,
) -> None:
    driver = drive(*ONE, environment=FULL)

    assert driver.wait() == 4
    assert "low on memory" in driver.output
    assert "Traceback" not in driver.output
    assert driver.left() == []
