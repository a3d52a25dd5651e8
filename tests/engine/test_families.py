"""Kinds of speculators, one of each that differs in how vLLM builds it, on an emulated H100."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.contract.attempts import Placement
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from tests.engine.test_emulation import BUILD, a_request, backends

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

ReportOf = Callable[[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReportOf]:
    folder = tmp_path_factory.mktemp("families")
    [config] = compose(["suite=families"])
    build = provision(build_specs(config)[BUILD], Path(config.cache), print)

    def report_of(model: str, backend: str) -> dict[str, Any]:
        request = a_request(build, folder, "h100", model, f"backend=[{backend}]")
        report: dict[str, Any] = json.loads(run_cell(request, Placement(node="here")))["report"]
        return report

    yield report_of
    for host in psutil.process_iter(["environ"]):
        if (host.info["environ"] or {}).get("VLLM_CACHE_ROOT", "").startswith(str(folder)):
            host.kill()


# The cells of one runner stand together: each runner has a warm host of its own.


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ("llama31_8b_eagle3", 1),
        ("glm45_air_mtp3", 3),
        ("qwen3_8b_dflash2", 5),
        ("qwen3_8b_dspark", 5),
    ],
)
def test_a_draft_of_v2_has_the_backend_that_is_asked_for_it(
    report_of: ReportOf, model: str, layers: int
) -> None:
    report = report_of(model, "v2_draft_triton_attn")

    check(report, runner="V2", layers=layers)
    assert backends(report["draft"]) == {"TRITON_ATTN"}


@pytest.mark.parametrize(
    ("model", "layers"), [("llama31_8b_draft_model", 16), ("gemma4_31b_mtp", 4)]
)
def test_two_speculators_of_v2_forget_the_backend_that_is_asked(
    report_of: ReportOf, model: str, layers: int
) -> None:
    report = report_of(model, "v2_draft_triton_attn")

    check(report, runner="V2", layers=layers)
    assert backends(report["draft"]) == {"FLASH_ATTN"}


@pytest.mark.parametrize(
    ("model", "layers"),
    [("llama31_8b_draft_model", 16), ("llama31_8b_pard", 16), ("gemma4_31b_mtp", 4)],
)
def test_a_draft_of_v1_has_the_backend_that_is_asked_for_it(
    report_of: ReportOf, model: str, layers: int
) -> None:
    report = report_of(model, "v1_draft_triton_attn")

    check(report, runner="V1", layers=layers)
    assert backends(report["draft"]) == {"TRITON_ATTN"}


@pytest.mark.parametrize("model", ["llama31_8b_ngram_gpu", "llama31_8b_medusa"])
def test_some_drafts_have_no_attention(report_of: ReportOf, model: str) -> None:
    check(report_of(model, "v1"), runner="V1", layers=0)


def test_the_runner_that_lacks_a_speculator_says_so(report_of: ReportOf) -> None:
    report = report_of("qwen3_8b_dspark", "v1")

    assert report["failure"]["phase"] == "config"
    assert "Model Runner V1 does not support" in report["failure"]["chain"][-1]["message"]


def check(report: dict[str, Any], *, runner: str, layers: int) -> None:
    assert report["failure"] is None
    assert report["engine"]["runner"] == runner
    assert backends(report["target"]) == {"FLASH_ATTN"}
    assert sum(group["layers"] for group in report["draft"]) == layers
