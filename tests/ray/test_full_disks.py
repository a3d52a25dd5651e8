"""A disk that is full, or can't be written, at each place where a run writes."""

from pathlib import Path

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.small_disk import small_disk
from tests.ray.test_faults import GOOD, HANGING, HUNG, ONE, one_passed_and_one_hangs, terminal

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]


def test_a_disk_that_fills_up_stops_the_run_and_with_room_the_same_command_goes_on(
    drive: StartDriver, tmp_path: Path
) -> None:
    """The log, the report and the record of the cell in flight don't fit any more."""
    with small_disk(tmp_path / "runs", "size=4m") as disk:
        driver = drive(*HANGING, prefix=disk.prefix, runs=disk.inside)
        one_passed_and_one_hangs(driver)

        disk.fill()
        driver.go()

        assert driver.wait() == 4
        assert "No space left" in driver.output
        assert "Traceback" not in driver.output
        assert driver.left() == []
        assert terminal(driver) == [GOOD]

        disk.free()
        again = drive(*HANGING, prefix=disk.prefix, runs=disk.inside)
        assert again.wait() == 0
        assert terminal(again) == [GOOD, HUNG]


@pytest.mark.parametrize(
    ("options", "said"),
    [("size=4k", "No space left"), ("size=64k,ro", "Read-only file system")],
)
def test_a_run_directory_that_can_t_be_made_is_said_before_ray_starts(
    drive: StartDriver, tmp_path: Path, options: str, said: str
) -> None:
    with small_disk(tmp_path / "runs", options) as disk:
        driver = drive(*ONE, prefix=disk.prefix)

        assert driver.wait() == 4
    assert said in driver.output
    assert "starting Ray" not in driver.output
    assert "Traceback" not in driver.output


@pytest.mark.parametrize("place", ["cache", "temporary"])
def test_a_full_cache_or_temporary_folder_is_one_clear_message(
    drive: StartDriver, tmp_path: Path, place: str
) -> None:
    with small_disk(tmp_path / place, "size=16k,mode=700") as disk:
        disk.fill()
        if place == "cache":
            driver = drive(*ONE, f"cache={disk.folder}", prefix=disk.prefix)
        else:
            driver = drive(*ONE, prefix=disk.prefix, environment={"TMPDIR": str(disk.folder)})

        assert driver.wait() == 4
    assert "error: " in driver.output
    assert "Traceback" not in driver.output
    assert driver.left() == []
