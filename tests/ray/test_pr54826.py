"""The case that this tool was made for, on two cards that are not there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.__main__ import answer
from tests.ray.driver import Driver

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(900)]

WORDS = [
    "suite=pr54826",
    "hardware=[rtx_pro_6000,mi300x]",
    "backend=[draft_triton_attn,flex_attention]",
    'suite.exclude=["rtx_pro_6000*/v0_32_gpu_unconditional"]',
]


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(folder=tmp_path_factory.mktemp("seed"), words=WORDS, patience_s=800)
    driver.start()
    driver.wait()
    yield driver
    driver.kill_all()


@pytest.fixture(scope="module")
def report(seed: Driver) -> dict[str, Any]:
    [summary] = seed.folder.glob("runs/*/summary.json")
    document: dict[str, Any] = json.loads(summary.read_text())
    return document


def cell(report: dict[str, Any], card: str, backend: str, build: str) -> dict[str, Any]:
    cell_id = f"{card}-emulated/llama31_8b_eagle3/{backend}/{build}"
    [found] = [cell for cell in report["cells"] if cell["id"] == cell_id]
    return dict(found)


def test_the_fix_is_proven_on_both_cards_and_ships(seed: Driver, report: dict[str, Any]) -> None:
    assert report["proof"]["sentence"] == (
        "proven: a draft gets the attention backend that is asked for it, on 2 of 2 cards"
    )
    assert report["proof"]["regressions"] == []
    assert seed.process.returncode == 0
    assert seed.left() == []


@pytest.mark.parametrize("card", ["rtx_pro_6000", "mi300x"])
def test_what_is_asked_for_the_draft_is_dropped_before_and_honoured_after(
    report: dict[str, Any], card: str
) -> None:
    verdicts = {
        build: cell(report, card, "draft_triton_attn", build)["requests"][
            "draft.attention_backend"
        ]["verdict"]
        for build in ("v0_28_gpu", "v0_32_gpu", "v0_32_gpu_reverted")
    }

    assert verdicts == {
        "v0_28_gpu": "dropped",
        "v0_32_gpu": "honoured",
        "v0_32_gpu_reverted": "dropped",
    }


def test_the_first_attempt_dies_on_rocm_with_a_layout_conflict(report: dict[str, Any]) -> None:
    died = cell(report, "mi300x", "flex_attention", "v0_32_gpu_unconditional")

    assert (died["outcome"], died["category"]) == ("refused", "kv_layout_conflict")
    assert "LBNHC" in died["failure"]["cause"]
    assert [each["cell_id"] for each in report["proof"]["attempts"]] == [died["id"]]


def test_everything_is_marked_as_emulated(report: dict[str, Any]) -> None:
    assert {cell["engine_mode"] for cell in report["cells"]} == {"emulated"}
    assert {one["card"]["name"] for one in report["emulations"].values()} == {
        "rtx_pro_6000",
        "mi300x",
    }


def test_explain_shows_how_vllm_chose(seed: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    [run] = seed.folder.glob("runs/*")
    answer(["explain", str(run), "mi300x-emulated/llama31_8b_eagle3/flex_attention/v0_32_gpu"])

    text = capsys.readouterr().out
    assert "selector, question 1" in text
    assert "accepted: " in text
    assert "gfx942" in text
