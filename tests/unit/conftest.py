"""What several files of unit tests need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.standin import started_for


@pytest.fixture
def no_host_stays(tmp_path: Path) -> Iterator[None]:
    """Beyond a test that starts some."""
    yield
    for process in started_for(tmp_path):
        process.kill()
