"""Cells that wait for a node: Ray's autoscaler brings it, or says why it never will."""

from pathlib import Path

import pytest

from orchestrator.errors import BLOCKED, SHIPS
from tests.ray.autoscaled import Autoscaled
from tests.ray.conftest import StartDriver
from tests.ray.node_kinds import NodeKind

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]

WORDS = (
    *("engine_mode=emulated", "suite.check=init"),
    *("hardware=[h100]", "model=[llama31_8b]", "backend=[auto]", "build=[v0_32_gpu]"),
)
CELL = "h100-emulated/llama31_8b/auto/v0_32_gpu"
FOR_CELLS = NodeKind(name="for-cells", cpus=2, labels={"vm.cpu": "yes"})
FOR_OTHERS = NodeKind(name="for-others", cpus=2, labels={"site": "elsewhere"})


def test_the_node_that_a_cell_waits_for_is_brought(drive: StartDriver, tmp_path: Path) -> None:
    groups = {"others": FOR_OTHERS, "cells": FOR_CELLS}
    with Autoscaled(groups, folder=tmp_path) as cluster:
        driver = drive(
            *WORDS,
            *(f"cluster.address={cluster.address}", "wait_s=120"),
            environment=cluster.environment(),
        )
        assert driver.wait() == SHIPS, driver.output

    assert [*driver.records()] == [CELL]
    assert "the autoscaler is asked for a node of 1 CPUs with vm.cpu=yes" in driver.output
    assert "the autoscaler starts 1 of its group cells" in driver.output
    assert "joined the cluster" in driver.output
    assert "group others" not in driver.output
    assert not cluster.left()


def test_a_node_that_no_group_has_never_comes(drive: StartDriver, tmp_path: Path) -> None:
    with Autoscaled({"others": FOR_OTHERS}, folder=tmp_path) as cluster:
        driver = drive(
            *WORDS,
            *(f"cluster.address={cluster.address}", "wait_s=20"),
            environment=cluster.environment(),
        )
        assert driver.wait() == BLOCKED, driver.output

    assert driver.records()[CELL]["judgement"]["verdict"] == "not run"
    assert "the autoscaler has no group of nodes like" in driver.output
    assert "none joined within 20 s" in driver.output
    assert not cluster.left()
