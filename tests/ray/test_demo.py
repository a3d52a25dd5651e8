"""The main job: `suite=demo` makes a real matrix, whose every entry was read from an engine."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.__main__ import answer
from tests.ray.driver import Driver

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(folder=tmp_path_factory.mktemp("demo"), words=["suite=demo"], patience_s=600)
    driver.start()
    driver.wait()
    yield driver
    driver.kill_all()


@pytest.fixture(scope="module")
def run(demo: Driver) -> Path:
    [folder] = demo.folder.glob("runs/*")
    return folder


@pytest.fixture(scope="module")
def cells(run: Path) -> dict[str, dict[str, Any]]:
    report = json.loads((run / "summary.json").read_text())
    return {cell["id"]: cell for cell in report["cells"]}


def backends(groups: list[dict[str, Any]]) -> list[str]:
    return [group["backend"] for group in groups]


def test_the_demo_ships_with_what_is_known_of_vllm_waived(demo: Driver) -> None:
    assert demo.process.returncode == 0
    assert "gate ships: 19 of 21 cells passed, 2 waived" in demo.output
    assert demo.left() == []


def test_it_covers_every_kind_of_model_with_real_engines(cells: dict[str, dict[str, Any]]) -> None:
    started = [cell for cell in cells.values() if cell["target"]]

    assert len(started) >= 14
    assert len({cell["model"] for cell in started}) >= 7
    assert {cell["engine_mode"] for cell in cells.values()} == {"real"}


def test_every_kind_of_answer_to_a_request_occurs(cells: dict[str, dict[str, Any]]) -> None:
    verdicts = {
        request["verdict"] for cell in cells.values() for request in cell["requests"].values()
    }

    assert {"honoured", "dropped", "refused", "inherited", "autoselected"} <= verdicts


def test_sliding_and_full_attention_are_two_kv_groups(cells: dict[str, dict[str, Any]]) -> None:
    groups = cells["cpu/gemma3/auto/v0_32"]["target"]

    assert sorted(group["kv_group"] for group in groups) == [0, 1]
    assert {group["sliding_window"] is None for group in groups} == {True, False}


def test_target_and_draft_are_read_apart(cells: dict[str, dict[str, Any]]) -> None:
    dropped = cells["cpu/llama_eagle3/draft_triton_attn/v0_32"]

    assert backends(dropped["target"]) == backends(dropped["draft"]) == ["CPU_ATTN"]
    assert [group["layers"] for group in dropped["target"]] == [8]
    assert [group["layers"] for group in dropped["draft"]] == [1]
    assert dropped["requests"]["draft.attention_backend"]["verdict"] == "dropped"
    assert dropped["requests"]["target.attention_backend"]["verdict"] == "autoselected"


def test_a_patch_of_ours_turns_a_dropped_request_into_a_refused_one(
    cells: dict[str, dict[str, Any]],
) -> None:
    plain = cells["cpu/llama/triton_attn/v0_32"]
    patched = cells["cpu/llama/triton_attn/v0_32_strict_cpu"]

    assert (plain["verdict"], plain["category"]) == ("failed", "silent_fallback")
    assert (patched["verdict"], patched["category"]) == ("passed", "backend_unsupported")
    assert plain["build"]["sources"] == {}
    assert [*patched["build"]["sources"]] == ["vllm/platforms/cpu.py"]
    assert plain["build"]["digest"] != patched["build"]["digest"]


def test_both_model_runners_ran(cells: dict[str, dict[str, Any]]) -> None:
    assert cells["cpu/llama/auto/v0_32"]["runner"] == "V1"
    assert cells["cpu/llama/v2/v0_32"]["runner"] == "V2"
    assert cells["cpu/llama_eagle3/v2_draft_cpu_attn/v0_32"]["runner"] == "V2"


def test_an_engine_that_dies_on_its_first_step_was_ready_and_read(
    cells: dict[str, dict[str, Any]],
) -> None:
    cell = cells["cpu/llama_eagle3_short/auto/v0_32"]

    assert cell["category"] == "first_step_failed"
    assert backends(cell["draft"]) == ["CPU_ATTN"]
    assert cell["failure"]["phase"] == "generate"


def test_explain_ends_with_a_command_that_runs_the_cell_alone(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answer(["explain", str(run), "cpu/dsv3_mtp/auto/v0_32"])
    [*_, command] = capsys.readouterr().out.splitlines()

    _, _, *words = shlex.split(command)
    alone = Driver(folder=tmp_path, words=words).start()

    assert alone.wait() == 0
    assert [*alone.records()] == ["cpu/dsv3_mtp/auto/v0_32"]
