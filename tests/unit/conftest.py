"""What several files of unit tests need."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.unit.standin import started_for


@pytest.fixture
def no_host_stays(tmp_path: Path) -> Iterator[None]:
    """Beyond a test that starts some."""
    yield
    for process in started_for(tmp_path):
        with suppress(psutil.NoSuchProcess):
            process.kill()
