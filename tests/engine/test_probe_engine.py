"""What a probe sees of real engines on a CPU."""

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.contract import terms
from jobs.contract.asked import Workload
from jobs.contract.terms import Phase
from jobs.probe import environment
from jobs.probe.shipped import MODELS
from tests.engine.warm_parent import WarmParent, request

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]

EAGLE3 = {"method": "eagle3", "model": "shipped:eagle3", "num_speculative_tokens": 2}
ARCHITECTURE_OF_NO_SHIPPED_MODEL = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
MTP = {"method": "mtp", "num_speculative_tokens": 1}


def backends(groups: list[dict[str, Any]]) -> list[str]:
    return [group["backend"] for group in groups]


def reasons(report: dict[str, Any], backend: str, said_by: str) -> list[str]:
    return [
        reason
        for rejection in report["rejections"]
        if (rejection["backend"], rejection["said_by"]) == (backend, said_by)
        for reason in rejection["reasons"]
    ]


def test_a_cpu_engine_takes_another_backend_than_the_one_asked_for(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:llama", attention_backend="TRITON_ATTN")

    assert report["failure"] is None
    assert report["ready"]
    assert backends(report["target"]) == ["CPU_ATTN"]
    assert report["target"][0]["layers"] == 2
    assert len(reasons(report, "TRITON_ATTN", "selection")) == 1
    assert "non-MLA not supported" in reasons(report, "CPU_MLA", "validation")
    assert reasons(report, "CPU_ATTN", "validation") == []
    assert len(report["tokens"]) == 8
    assert report["engine"]["runner"] == "V1"
    assert report["notes"] == []
    assert len(report["sources"]["vllm/config/speculative.py"]) == 64


def test_every_phase_of_a_start_has_its_time(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:llama")

    # An engine on a CPU captures no graphs, and speed is measured only where it is asked for.
    others = {Phase.PROVISION, Phase.CAPTURE, Phase.MEASURE}
    of_a_probe = [phase for phase in Phase if phase not in others]
    assert [timed["phase"] for timed in report["phases"]] == of_a_probe


def test_an_architecture_that_no_host_knows_is_looked_at_in_the_probe(
    warm: WarmParent, tmp_path: Path
) -> None:
    """Another interpreter would take longer than the rest of the cell, and leave its findings."""
    config = json.loads((MODELS / "llama" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | ARCHITECTURE_OF_NO_SHIPPED_MODEL))

    report = warm.probe(model=str(tmp_path))

    assert report["failure"] is None
    assert report["engine"]["target_class"].endswith("Qwen2ForCausalLM")
    assert sum(timed["seconds"] for timed in report["phases"]) < 5


def test_the_drafts_backend_is_read_apart_from_the_targets(warm: WarmParent) -> None:
    asked = {**EAGLE3, "attention_backend": "TRITON_ATTN"}
    report = warm.probe(model="shipped:llama8", speculative_config=asked)

    assert report["target"][0]["layers"] == 8
    assert backends(report["draft"]) == ["CPU_ATTN"]
    assert report["draft"][0]["layer_names"] == ["model.layers.8.self_attn.attn"]
    assert report["engine"]["speculative_method"] == "eagle3"
    assert report["notes"] == []


def test_sliding_and_full_attention_are_two_kv_groups(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:gemma3")

    kinds = {group["attention_kind"]: group["sliding_window"] for group in report["target"]}
    assert kinds == {"SlidingWindowSpec": 64, "FullAttentionSpec": None}


def test_mla_and_experts_of_target_and_draft_are_read(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:dsv3", dtype="bfloat16", speculative_config=MTP)

    assert report["failure"] is None
    assert backends(report["target"]) == backends(report["draft"])
    assert report["target"][0]["attention_kind"] == "MLAAttentionSpec"
    assert report["target"][0]["mla_prefill_backend"] is not None
    assert backends(report["target_moe"]) == backends(report["draft_moe"]) == ["CPU"]


def test_an_engine_that_dies_in_its_first_step_was_read_before(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:llama", speculative_config=EAGLE3)

    assert report["ready"]
    assert backends(report["draft"]) == ["CPU_ATTN"]
    assert report["failure"]["phase"] == "generate"
    assert report["failure"]["chain"][-1]["type"] == "builtins.RuntimeError"


def test_a_name_that_vllm_does_not_know_is_refused(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:llama", attention_backend="NO_SUCH_BACKEND")

    assert not report["ready"]
    assert report["failure"]["phase"] == "config"
    assert len(reasons(report, "NO_SUCH_BACKEND", "error")) == 1


def test_experts_that_a_cpu_cannot_run_are_refused_while_loading(warm: WarmParent) -> None:
    report = warm.probe(model="shipped:mixtral", dtype="bfloat16", moe_backend="triton")

    assert report["failure"]["phase"] == "load"
    assert report["failure"]["chain"][-1]["where"].startswith("vllm/model_executor/")
    assert len(reasons(report, "TRITON", "error")) == 1


def test_the_v2_runner_works_on_a_cpu_with_the_interpreter(warm_v2: WarmParent) -> None:
    asked = {**EAGLE3, "attention_backend": "TRITON_ATTN"}
    report = warm_v2.probe(model="shipped:llama8", speculative_config=asked)

    assert report["failure"] is None
    assert report["engine"]["runner"] == "V2"
    assert (backends(report["target"]), backends(report["draft"])) == (["CPU_ATTN"], ["CPU_ATTN"])
    assert report["draft"][0]["layers"] == 1
    assert len(report["tokens"]) == 8


def test_an_engine_of_several_processes_is_read_and_its_failure_has_its_root(
    vllm_python: Path, tmp_path: Path
) -> None:
    arguments = {"model": "shipped:llama", "speculative_config": EAGLE3}
    (tmp_path / "request.json").write_text(terms.to_json(request(arguments)))
    with subprocess.Popen(
        [vllm_python, "-m", "jobs.probe", tmp_path / "request.json", tmp_path / "report.json"],
        cwd=environment.ROOT,
        env={
            **os.environ,
            "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
            "VLLM_CACHE_ROOT": str(tmp_path / "cache"),
        },
        start_new_session=True,
    ) as probe:
        assert probe.wait(timeout=300) == 0
        left = [process for process in psutil.process_iter() if session(process) == probe.pid]

    report = json.loads((tmp_path / "report.json").read_text())
    assert backends(report["draft"]) == ["CPU_ATTN"]
    assert report["failure"]["phase"] == "generate"
    assert report["failure"]["chain"][-1]["type"] == "builtins.RuntimeError"
    assert report["failure"]["process"] != "probe"
    # They notice the end of the probe by themselves.
    assert psutil.wait_procs(left, timeout=10)[1] == []


def session(process: psutil.Process) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(process.pid)
    return None


def test_the_speed_of_an_engine_and_of_its_drafts_is_measured(warm: WarmParent) -> None:
    workload = Workload(samples=2, prompts=4, prompt_tokens=16, output_tokens=16, seed=0)
    ngram = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3}
    report = warm.probe(workload=workload, model="shipped:llama", speculative_config=ngram)

    assert report["failure"] is None
    assert len(report["speed"]["samples"]) == 2
    for sample in report["speed"]["samples"]:
        assert sample["tokens_per_s"] > 0
        assert 0 < sample["ttft_s"] < 60
        assert 1 <= sample["acceptance_length"] <= 3
    assert report["speed"]["device_peak_mib"] is None
    assert [time["phase"] for time in report["phases"]][-3:] == ["generate", "measure", "teardown"]
