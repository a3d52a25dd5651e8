"""Ports of cells that run side by side."""

import subprocess
import sys

import pytest

from jobs.node import ports
from jobs.node.errors import NodeError
from tests.unit.standin import ROOT

HOLDER = """
import time
from jobs.node import ports
with ports.held() as first:
    print(first, flush=True)
    time.sleep(600)
"""


def test_each_cell_has_a_range_of_its_own() -> None:
    with ports.held() as first, ports.held() as second:
        assert abs(first - second) >= ports.RANGE


def test_a_killed_holder_frees_its_range() -> None:
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as holder:
        assert holder.stdout is not None
        first = int(holder.stdout.readline())
        with ports.held() as other:
            assert other != first
        holder.kill()

    with ports.held() as again:
        assert again <= first


def test_when_all_ranges_are_taken_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "RANGES", 0)

    with pytest.raises(NodeError, match="no ports are left"), ports.held():
        pass
