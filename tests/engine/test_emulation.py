"""vLLM's own engine on cards that are not there, through the way that every cell goes."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Placement
from jobs.contract.builds import ProvisionedBuild
from jobs.node import environment
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell
from orchestrator.asked import cells
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

BUILD = "v0_32_gpu"

Attempt = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def build() -> ProvisionedBuild:
    [config] = compose(_words("h100", "llama31_8b"))
    return provision(build_specs(config)[BUILD], Path(config.cache), print)


@pytest.fixture(scope="module")
def attempt(build: ProvisionedBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempt]:
    """The report of one cell: card, model, and what else the configuration is to say."""
    folder = tmp_path_factory.mktemp("cells")

    def attempt(card: str, model: str, *words: str) -> dict[str, Any]:
        request = a_request(build, folder, card, model, *words)
        report: dict[str, Any] = json.loads(run_cell(request, Placement(node="here")))["report"]
        return report

    yield attempt
    for host in psutil.process_iter(["environ"]):
        if (host.info["environ"] or {}).get("VLLM_CACHE_ROOT", "").startswith(str(folder)):
            host.kill()


def a_request(
    build: ProvisionedBuild, folder: Path, card: str, model: str, *words: str
) -> CellRequest:
    [config] = compose(_words(card, model, *words))
    [cell] = cells.expand(config, build_specs(config))
    number = len(list(folder.iterdir()))
    workdir = str(folder / str(number))
    return cell_request(cell, build, attempt=1, workdir=workdir, cache=str(folder / "cache"))


def _words(card: str, model: str, *more: str) -> list[str]:
    backend = [] if any(word.startswith("backend=") for word in more) else ["backend=[auto]"]
    axes = [f"hardware=[{card}]", f"model=[{model}]", *backend, f"build=[{BUILD}]"]
    return [*axes, "engine_mode=emulated", "suite.check=init", *more]


def backends(groups: list[dict[str, Any]]) -> set[str]:
    return {group["backend"] for group in groups}


def test_the_drafts_backend_is_honoured_and_nothing_looks_real(attempt: Attempt) -> None:
    report = attempt("rtx_pro_6000", "llama31_8b_eagle3", "backend=[draft_triton_attn]")

    assert report["failure"] is None
    assert report["ready"]
    assert report["notes"] == []
    assert report["engine"]["runner"] == "V2"
    assert report["device"]["arch"] == "12.0"
    assert backends(report["target"]) == {"FLASH_ATTN"}
    assert backends(report["draft"]) == {"TRITON_ATTN"}
    assert report["target"][0]["layers"] == 32
    emulated = report["emulated"]
    assert emulated["card"]["name"] == "rtx_pro_6000"
    assert "vllm._C_stable_libtorch" in emulated["stubs"]
    assert "vllm.v1.worker.gpu_worker.Worker.determine_available_memory" in emulated["replaced"]


def test_the_selectors_table_has_each_question_once(attempt: Attempt) -> None:
    report = attempt("rtx_pro_6000", "llama31_8b_eagle3", "backend=[draft_triton_attn]")

    target, draft = report["selections"]
    assert (target["asked"], draft["asked"]) == (None, "TRITON_ATTN")
    assert target["question"]["head_size"] == "128"
    assert target["accepted"][0] == "FLASH_ATTN"
    assert all(rejected["reasons"] for rejected in target["rejected"])


def test_the_v1_runner_starts_too(attempt: Attempt) -> None:
    report = attempt("rtx_pro_6000", "llama31_8b_medusa")

    assert report["ready"]
    assert report["engine"]["runner"] == "V1"


def test_backends_of_mla_prefill_and_of_experts_are_read(attempt: Attempt) -> None:
    report = attempt("rtx_pro_6000", "deepseek_v3_mtp")

    assert report["failure"] is None
    [target], [draft] = report["target"], report["draft"]
    assert target["attention_kind"] == draft["attention_kind"] == "MLAAttentionSpec"
    assert target["mla_prefill_backend"] is not None
    assert report["target_moe"][0]["backend"] is not None
    assert report["draft_moe"][0]["backend"] is not None


def test_a_card_can_be_too_small_for_the_kv_cache(attempt: Attempt) -> None:
    small = "model.llama31_8b.engine_args.gpu_memory_utilization=0.16"
    report = attempt("rtx_pro_6000", "llama31_8b", f"+{small}")

    assert report["failure"]["phase"] == "kv_cache"
    assert "KV cache" in report["failure"]["chain"][-1]["message"]


def test_layouts_that_exclude_each_other_end_a_cell_whose_backends_are_known(
    attempt: Attempt,
) -> None:
    words = ("backend=[flex_attention]", "+backend.flex_attention.runner=V1")
    report = attempt("mi300x", "llama31_8b_eagle3", *words)

    assert not report["ready"]
    assert report["engine"]["runner"] == "V1"
    assert backends(report["target"]) == {"FLEX_ATTENTION"}
    assert backends(report["draft"]) == {"ROCM_ATTN"}
    root = report["failure"]["chain"][-1]
    assert root["message"].endswith("[['LBNHC'], ['LHBNC', 'LBHNC']].")
    assert report["emulated"]["card"]["name"] == "mi300x"


def test_amd_cards_are_known_by_their_architecture(attempt: Attempt) -> None:
    report = attempt("mi300x", "llama31_8b_eagle3")

    assert report["failure"] is None
    assert report["device"]["arch"] == "gfx942"
    assert report["device"]["platform"] == "vllm.platforms.rocm.RocmPlatform"
    assert backends(report["target"]) == backends(report["draft"]) == {"ROCM_ATTN"}


IN_THE_EMULATION = """
import json, os, sys
from jobs.probe.emulation import start

start.install()
import torch
from vllm.third_party import pynvml


def limit(attempt):
    try:
        attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


x = torch.ones(2, 2, device="cuda")
with open(sys.argv[1], "w") as file:
    json.dump(
        {
            "where": [x.device.type, x.cuda().device.type, torch.zeros(1).to("cuda:0").device.type],
            "count": pynvml.nvmlDeviceGetCount(),
            "fp8": torch.ops._C.cutlass_scaled_mm_supports_fp8(90),
            "there": hasattr(torch.ops._C, "rms_norm"),
            "not there": hasattr(torch.ops._C, "no_such_operator"),
            "operator": limit(lambda: torch.ops._C.rms_norm(x, x, x, 1e-6)),
            "library": limit(lambda: pynvml.nvmlDeviceGetTemperature(0)),
            "package": limit(lambda: __import__("humming").anything()),
        },
        file,
    )
"""


def test_what_has_no_kernel_says_so_by_name(build: ProvisionedBuild, tmp_path: Path) -> None:
    env = environment.of_host(a_request(build, tmp_path, "h100", "llama31_8b"))
    answers = tmp_path / "answers.json"
    subprocess.run([build.python, "-c", IN_THE_EMULATION, answers], env=env, check=True)

    assert json.loads(answers.read_text()) == {
        "where": ["meta", "meta", "meta"],
        "count": 1,
        "fp8": True,
        "there": True,
        "not there": False,
        "operator": "EmulationLimit: torch.ops._C.rms_norm: has no kernel here",
        "library": "EmulationLacks: vllm.third_party.pynvml.nvmlDeviceGetTemperature: "
        "this stub does not have it",
        "package": "EmulationLimit: humming.anything: the package is only pretended",
    }


def test_the_selector_is_asked_without_an_engine(build: ProvisionedBuild, tmp_path: Path) -> None:
    env = environment.of_host(a_request(build, tmp_path, "b200", "llama31_8b"))
    questions = [
        {"head_size": 128, "num_heads": 32},
        {"head_size": 128, "num_heads": 32, "requested": "TRITON_ATTN"},
        {"head_size": 576, "num_heads": 128, "use_mla": True},
        {"head_size": 20, "requested": "FLASH_ATTN"},
    ]
    answers = tmp_path / "answers.jsonl"
    subprocess.run(
        [build.python, "-m", "jobs.probe.emulation.ask", answers],
        input="".join(f"{json.dumps(question)}{os.linesep}" for question in questions),
        env=env,
        text=True,
        check=True,
    )

    auto, triton, mla, refused = map(json.loads, answers.read_text().splitlines())
    assert (auto["backend"], auto["table"]["accepted"][0]) == ("FLASHINFER", "FLASHINFER")
    assert triton["class_path"].endswith("triton_attn.TritonAttentionBackend")
    assert mla["backend"].endswith("_MLA")
    assert refused["backend"] is None
    assert "FLASH_ATTN" in refused["error"]
