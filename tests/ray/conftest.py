from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ray.driver import Driver

StartDriver = Callable[..., Driver]


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[StartDriver]:
    """Starts drivers in one folder; whatever a test left of them is killed."""
    drivers: list[Driver] = []

    def start(*words: str, folder: Path = tmp_path, **more: Any) -> Driver:
        drivers.append(Driver(folder=folder, words=words, **more))
        return drivers[-1].start()

    yield start
    for driver in drivers:
        driver.kill_all()
