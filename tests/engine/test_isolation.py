"""A probe that was forked sees what one in an interpreter of its own sees."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.asked import CellRequest, Deadlines
from jobs.contract.attempts import Placement
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.terms import Isolation
from jobs.node import host_boot
from jobs.node.run_cell import run_cell
from tests.engine.warm_parent import request

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

OF_ONE_PROCESS = {"pid", "phases"}


def test_a_warm_probe_reports_what_a_cold_one_does(
    vllm_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_boot, "IDLE_S", 5.0)
    boots_the_host, warm, cold = (
        _attempt(vllm_python, tmp_path, name, isolation)
        for name, isolation in (
            ("first", Isolation.WARM),
            ("warm", Isolation.WARM),
            ("cold", Isolation.COLD),
        )
    )
    print(f"warm {warm['seconds']:.1f} s, cold {cold['seconds']:.1f} s")  # noqa: T201 - for -s

    assert warm["report"]["failure"] is None
    assert warm["report"]["ready"]
    assert _lasting(warm) == _lasting(cold) == _lasting(boots_the_host)
    assert [attempt["processes_killed"] for attempt in (boots_the_host, warm, cold)] == [0, 0, 0]
    assert warm["seconds"] < cold["seconds"]
    assert warm["memory_mib"] == pytest.approx(cold["memory_mib"], rel=0.15)


def _attempt(python: Path, folder: Path, name: str, isolation: Isolation) -> dict[str, Any]:
    build = ProvisionedBuild(
        name="build", digest="isolation", python=str(python), vllm_version="", torch_version=""
    )
    cell = CellRequest(
        probe=request({"model": "shipped:llama"}),
        build=build,
        env={},
        isolation=isolation,
        deadlines=Deadlines(attempt_s=300, quiet_s=300),
        workdir=str(folder / name),
        cache=str(folder / "cache"),
    )
    attempt: dict[str, Any] = json.loads(run_cell(cell, Placement(node="here")))
    return attempt


def _lasting(attempt: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attempt["report"].items() if k not in OF_ONE_PROCESS}
