"""What several files of unit tests need."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jobs.node.builds import bases
from tests.unit import fake_vllm
from tests.unit.standin import started_for


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stand-in for uv, in which its calls are listed."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "tools" / "python"))
    monkeypatch.setattr(bases, "SPACE_GIB", {"cpu": 0, "other": 0})
    for variable in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
        monkeypatch.delenv(variable, raising=False)
    return fake_vllm.uv_beside(tmp_path / "tools" / "python")


@pytest.fixture
def no_host_stays(tmp_path: Path) -> Iterator[None]:
    """Beyond a test that starts some."""
    yield
    for process in started_for(tmp_path):
        with suppress(psutil.NoSuchProcess):
            process.kill()
