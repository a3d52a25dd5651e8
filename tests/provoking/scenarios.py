"""
Failures to provoke, and what each should be called. Written down before anybody looked.

An expected `None` is no failure: the cell passes whatever its engine did besides.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jobs.contract.terms import Check, Isolation, Phase
from orchestrator.asked.config import Asked, Runner

SMALL: dict[str, Any] = {
    "dtype": "float32",
    "load_format": "dummy",
    "skip_tokenizer_init": True,
    "enforce_eager": True,
    "max_model_len": 128,
    "max_num_seqs": 4,
    "max_num_batched_tokens": 256,
    "disable_log_stats": True,
    "num_gpu_blocks_override": 64,
}
REAL_WEIGHTS = {"load_format": "auto"}
TWO_WORKERS = {"tensor_parallel_size": 2}
A_WORKER = {"distributed_executor_backend": "mp"}
EAGLE3 = {"method": "eagle3", "model": "shipped:eagle3", "num_speculative_tokens": 2}
MEDUSA = {"method": "medusa", "model": "shipped:medusa", "num_speculative_tokens": 2}


class Build(StrEnum):
    EVIL = "evil"
    """vLLM for CPUs, and in it what does the deeds of evil.py."""

    EMULATED = "emulated"
    """vLLM for GPUs, on an emulated H100."""

    ENDS_ITS_INTERPRETER = "ends-its-interpreter"
    WRONG_SYNTAX = "wrong-syntax"
    WRONG_IMPORT = "wrong-import"
    WRONG_NAME = "wrong-name"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    name: str
    expected: str | None
    build: Build = Build.EVIL
    model: str = "shipped:llama"
    """`made:NAME` is one of models.py."""

    asked: Asked = field(default_factory=Asked)
    runner: Runner | None = None
    speculative: dict[str, Any] | None = None
    moe: bool = False
    args: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    check: Check = Check.INIT
    isolation: Isolation = Isolation.WARM
    deadlines_s: dict[Phase, float] = field(default_factory=dict)
    quiet_s: float = 120.0
    alone: bool = False
    """Other cells of the host would be lost with it."""

    slow: bool = False


def of_model(name: str, expected: str, **more: Any) -> Scenario:
    args = REAL_WEIGHTS | more.pop("args", {})
    return Scenario(name=name, expected=expected, model=f"made:{name}", args=args, **more)


def of_hub(answer: str, expected: str, **more: Any) -> Scenario:
    name = f"hub answers {answer}" if answer.isdigit() else "hub does not answer"
    return Scenario(name=name, expected=expected, model=f"matrix/status-{answer}", **more)


def refused(name: str, expected: str, **more: Any) -> Scenario:
    return Scenario(name=name, expected=expected, **more)


def emulated(name: str, expected: str, **more: Any) -> Scenario:
    args = {"dtype": "bfloat16"} | more.pop("args", {})
    return Scenario(name=name, expected=expected, build=Build.EMULATED, args=args, **more)


def deed(deed: str, expected: str | None, *, at: str = "load", **more: Any) -> Scenario:
    name = more.pop("name", f"{deed.replace('_', ' ')} at {at}")
    check = Check.GENERATE if at == "step" else Check.INIT
    env = {"MATRIX_EVIL": f"{at}:{deed}"}
    return Scenario(name=name, expected=expected, env=env, check=check, **more)


def deed_of_worker(name: str, expected: str, *, at: str = "load", **more: Any) -> Scenario:
    told = f"a worker {name.replace('_', ' ')} at {at}"
    args = more.pop("args", A_WORKER)
    return deed(name, expected, at=at, name=told, args=args, slow=True, **more)


IN_LOAD = {Phase.LOAD: 3.0}
IN_GENERATE = {Phase.GENERATE: 3.0}

SCENARIOS = (
    # What is asked
    refused("unknown backend", "config_invalid", asked=Asked(attention_backend="NO_SUCH")),
    refused("foreign backend", "silent_fallback", asked=Asked(attention_backend="FLASHINFER")),
    refused(
        "bad head size", "backend_unsupported", model="shipped:llama_hd20", check=Check.GENERATE
    ),
    refused("unknown KV dtype", "config_invalid", asked=Asked(kv_cache_dtype="fp3")),
    refused("unknown dtype", "config_invalid", args={"dtype": "int3"}),
    refused("unknown quantization", "quantization_unsupported", args={"quantization": "magic"}),
    refused("dtype of a quantization", "dtype_unsupported", args={"quantization": "fp8"}),
    refused(
        "quantization without kernels",
        "kernel_unsupported",
        args={"quantization": "fp8", "dtype": "bfloat16"},
    ),
    refused("negative length", "config_invalid", args={"max_model_len": -5}),
    refused("too long", "config_invalid", args={"max_model_len": 100_000}),
    refused("heads that can't be split", "config_invalid", args={"tensor_parallel_size": 3}),
    refused("unknown argument", "config_invalid", args={"max_modle_len": 128}),
    refused(
        "no number in the environment", "config_invalid", env={"VLLM_USE_V2_MODEL_RUNNER": "maybe"}
    ),
    refused("too few blocks", "kv_cache_too_small", args={"num_gpu_blocks_override": 1}),
    refused(
        "unknown MoE backend",
        "config_invalid",
        model="shipped:mixtral",
        moe=True,
        asked=Asked(moe_backend="no_such"),
    ),
    refused(
        "unknown connector",
        "kv_connector_failed",
        args={"kv_transfer_config": {"kv_connector": "NoSuch", "kv_role": "kv_both"}},
    ),
    refused(
        "unknown speculation",
        "config_invalid",
        speculative={"method": "guessing", "num_speculative_tokens": 2},
    ),
    refused(
        "draft of another vocabulary",
        "spec_decode_unsupported",
        speculative={
            "method": "draft_model",
            "model": "made:another-vocabulary",
            "num_speculative_tokens": 2,
        },
    ),
    refused("V2 and Medusa", "runner_unsupported", runner="V2", speculative=MEDUSA),
    # Models
    of_model("without-weights", "model_artifact_invalid"),
    of_model("without-config", "model_artifact_invalid"),
    of_model("broken-config", "model_artifact_invalid"),
    of_model("cut-weights", "model_artifact_invalid"),
    of_model("no-weights-at-all", "model_artifact_invalid"),
    of_model("index-of-absent-files", "model_artifact_invalid"),
    of_model("weights-of-another-shape", "weights_mismatch"),
    of_model("too-few-weights", "weights_mismatch"),
    of_model("unknown-architecture", "model_unsupported"),
    of_model("unknown-type", "model_unsupported"),
    of_model("code-that-needs-a-package", "missing_package", args={"trust_remote_code": True}),
    refused("no such folder", "model_artifact_invalid", model="/nonexistent/model"),
    refused("no tokenizer", "model_artifact_invalid", args={"skip_tokenizer_init": False}),
    # The hub
    of_hub("401", "repository_not_found"),
    of_hub("403", "gated_repo"),
    of_hub("404", "repository_not_found"),
    of_hub("429", "download_failed", slow=True),
    of_hub("500", "download_failed", slow=True),
    of_hub("slow", "download_failed", deadlines_s={Phase.CONFIG: 5.0}),
    # Emulated cards
    emulated(
        "head size on a card",
        "backend_unsupported",
        model="shipped:llama_hd20",
        asked=Asked(attention_backend="FLASH_ATTN"),
    ),
    emulated(
        "backend of another vendor",
        "foreign_backend",
        asked=Asked(attention_backend="ROCM_ATTN"),
    ),
    emulated("MLA for no MLA", "backend_unsupported", asked=Asked(attention_backend="FLASHMLA")),
    emulated(
        "MoE backend of another vendor",
        "moe_backend_unsupported",
        model="shipped:mixtral",
        moe=True,
        asked=Asked(moe_backend="aiter"),
    ),
    emulated("V2 and Medusa on a card", "runner_unsupported", runner="V2", speculative=MEDUSA),
    emulated("tokens of an emulated card", "emulation_limit", check=Check.GENERATE),
    emulated(
        "KV dtype and MLA",
        "kv_cache_dtype_unsupported",
        model="shipped:dsv3",
        asked=Asked(kv_cache_dtype="nvfp4"),
    ),
    emulated(
        "too little memory",
        "kv_cache_too_small",
        model="shipped:llama31_8b",
        args={"gpu_memory_utilization": 0.1, "num_gpu_blocks_override": None},
    ),
    # Exceptions
    deed("raises", "patch_raised"),
    deed("raises", "patch_raised", at="step"),
    deed("raises_without_words", "patch_raised"),
    deed("says_what_no_encoding_knows", "patch_raised"),
    deed("breaks_the_loader", "internal_error"),
    deed("breaks_the_forward_pass", "first_step_failed", at="step"),
    # The end of a process
    deed("segfault", "segfault"),
    deed("segfault", "segfault", at="step"),
    deed("abort", "segfault"),
    deed("bus_error", "bus_error"),
    deed("overflows_its_stack", "segfault"),
    deed("is_killed", "worker_killed"),
    deed("is_killed", "worker_killed", at="step"),
    deed("is_terminated", "worker_killed"),
    deed("is_interrupted", "worker_killed"),
    deed("exits_in_peace", "engine_exited"),
    deed("exits_in_peace", "engine_exited", at="step"),
    deed("exits_with_one", "engine_exited"),
    deed("exits_with_three", "engine_exited"),
    # Hangs
    deed("hangs", "timeout", deadlines_s=IN_LOAD),
    deed("hangs", "timeout", at="step", deadlines_s=IN_GENERATE),
    deed("hangs", "timeout", at="start", quiet_s=4.0, name="hangs and is quiet"),
    deed("hangs_and_will_not_end", "timeout", deadlines_s=IN_LOAD),
    deed("is_busy", "timeout", deadlines_s=IN_LOAD),
    deed("is_stopped", "timeout", deadlines_s=IN_LOAD),
    deed("waits_for_a_child", "timeout", deadlines_s=IN_LOAD),
    # What runs out
    deed("opens_too_much", "limit_reached"),
    deed("starts_too_many_threads", "limit_reached"),
    deed("fills_memory_to_its_limit", "oom_host"),
    deed("fills_memory_of_python", "oom_host"),
    deed("is_too_fat_for_the_kernel", "oom_host"),
    deed("fills_the_disk", "no_space"),
    deed("writes_where_it_may_not", "not_permitted"),
    deed("reads_what_it_may_not", "not_permitted"),
    deed("fills_shared_memory", "bus_error"),
    deed("leaves_no_shared_memory", "shm_too_small", at="start", args=TWO_WORKERS),
    deed("takes_a_port_twice", "port_in_use"),
    # Of an engine with several processes
    deed_of_worker("raises", "patch_raised", args=TWO_WORKERS),
    deed_of_worker("breaks_the_loader", "internal_error"),
    deed_of_worker("fills_the_disk", "no_space"),
    deed_of_worker("segfault", "segfault", args=TWO_WORKERS),
    deed_of_worker("is_killed", "worker_killed"),
    deed_of_worker("exits_with_one", "worker_died", args=TWO_WORKERS),
    deed_of_worker("is_killed", "worker_killed", at="step"),
    deed_of_worker("hangs", "timeout", deadlines_s={Phase.LOAD: 8.0}),
    # What catches the eye, but is not the cause
    deed("has_no_memory_for_the_fallback", "oom_host"),
    deed("has_no_descriptors_after_a_failed_clean_up", "limit_reached"),
    deed("names_a_cause_that_was_never_raised", "patch_raised"),
    deed("fills_the_disk_in_a_group", "no_space"),
    deed_of_worker("fills_the_disk_in_a_group", "no_space"),
    deed("fills_the_memory_of_a_pool", "oom_host"),
    deed("objects_to_a_text_about_a_full_disk", "patch_raised"),
    deed("connects_to_nobody", "nccl_error"),
    deed("lives_without_a_cache_and_exits", "engine_exited"),
    deed("tears_what_others_logged", "patch_raised"),
    deed_of_worker(
        "lives_without_a_cache",
        "kv_cache_too_small",
        args={**A_WORKER, "num_gpu_blocks_override": 1},
    ),
    # What is no failure
    deed("can_not_be_read", None),
    deed("floods", None),
    deed("leaves_a_daemon", None),
    # The report
    deed("tears_its_report", "report_lost"),
    deed("puts_a_folder_there", "report_lost"),
    # Builds
    Scenario(
        name="ends its interpreter", expected="build_broken", build=Build.ENDS_ITS_INTERPRETER
    ),
    Scenario(name="wrong syntax", expected="build_broken", build=Build.WRONG_SYNTAX),
    Scenario(name="wrong import", expected="build_broken", build=Build.WRONG_IMPORT),
    Scenario(name="wrong name", expected="build_broken", build=Build.WRONG_NAME),
    # Its parents
    deed("kills_its_keeper", "ends_its_host", isolation=Isolation.COLD, alone=True),
    deed("kills_its_host", "ends_its_host", isolation=Isolation.COLD, alone=True),
    deed("kills_its_host", "host_lost", alone=True, name="kills a host of others"),
)
