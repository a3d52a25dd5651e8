"""From an attempt to the kind of its failure."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.contract.attempts import Attempt, Exit, Timeout
from jobs.contract.seen import ExceptionSeen, Failure
from jobs.contract.terms import Check, EngineMode, Isolation, Phase
from orchestrator.concluded.classify import classify, decisive
from orchestrator.taxonomy import Retry, taxonomy
from tests.builders import a_failed_report, a_report, an_attempt

# Messages as vLLM 0.32.0 gives them, shortened.
MESSAGES = [
    ("Unknown attention backend: 'NO_SUCH'. Valid options are: X", "config_invalid"),
    (
        "Selected backend X is not valid for this configuration. Reason: [...]",
        "backend_unsupported",
    ),
    (
        "No valid attention backend found for cuda with AttentionSelectorConfig",
        "backend_unsupported",
    ),
    (
        "No KV cache layout satisfies every supported set: [['LBNHC'], ['LHBNC', 'LBHNC']].",
        "kv_layout_conflict",
    ),
    (
        "Unquantized MoE backend TRITON does not support the deployment configuration",
        "moe_backend_unsupported",
    ),
    (
        "nvfp4 KV cache is not supported with MLA (Multi-head Latent Attention)",
        "kv_cache_dtype_unsupported",
    ),
    ("Model Runner V2 does not yet support: speculative method 'medusa'", "runner_unsupported"),
    ("Model architectures ['X'] are not supported for now.", "model_unsupported"),
    ("Free memory on device cuda:0 (1/80 GiB) on startup is less than desired", "gpu_busy"),
    ("No available memory for the cache blocks. Try increasing", "kv_cache_too_small"),
    ("Insufficient space in /dev/shm for x: 10 MiB required", "shm_too_small"),
    ("Cannot find any model weights with '/models/x'", "model_artifact_invalid"),
    ("something that no rule knows", "internal_error"),
]

WHAT_BROKE = [
    ("builtins.OSError", "[Errno 98] Address already in use", "port_in_use"),
    ("builtins.RuntimeError", "NCCL error: unhandled cuda error", "nccl_error"),
    (
        "torch.AcceleratorError",
        "CUDA error: an illegal memory access was encountered",
        "cuda_error",
    ),
    ("torch.AcceleratorError", "CUDA error: out of memory\nSearch for `cuda", "oom_weights"),
    ("builtins.RuntimeError", "HIP error: out of memory", "oom_weights"),
    (
        "builtins.RuntimeError",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "oom_weights",
    ),
    (
        "torch.distributed.DistNetworkError",
        "The client socket has failed to connect (errno: 111 - Connection refused).",
        "nccl_error",
    ),
    (
        "torch.distributed.DistNetworkError",
        "The server socket has failed to listen. code: -98, name: EADDRINUSE",
        "port_in_use",
    ),
    (
        "torch.distributed.DistBackendError",
        "NCCL error\nError while creating shared memory segment /x: No space left on device (28)",
        "shm_too_small",
    ),
    ("builtins.OSError", "[Errno 28] No space left on device: '/psm_4bc3'", "shm_too_small"),
    ("builtins.OSError", "[Errno 28] No space left on device: '/x/model'", "no_space"),
    (
        "torch.distributed.DistBackendError",
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
        "nccl_error",
    ),
    ("builtins.RuntimeError", "Ninja build failed. Ninja output:", "kernel_compile_failed"),
    ("huggingface_hub.errors.HfHubHTTPError", "403 Client Error: Forbidden", "gated_repo"),
]
"""As those who raise them say, shortened."""

QUOTED = [
    ("builtins.AttributeError", "'NoneType' object has no attribute 'kv_connector'"),
    ("builtins.KeyError", "'ninja-7b'"),
    ("builtins.KeyError", "'layers.0.gated repo_proj.weight'"),
    ("builtins.ValueError", "bad value in config.json: {'note': 'see 403 Client Error'}"),
    ("builtins.ValueError", "rope_scaling: unknown type 'No space left on device'"),
    ("builtins.ValueError", "no such backend: Connection refused"),
]


@pytest.mark.parametrize(("message", "category"), MESSAGES)
def test_the_innermost_exception_names_the_category(message: str, category: str) -> None:
    assert classify(an_attempt(a_failed_report(message))) == category


@pytest.mark.parametrize(("type_", "message", "category"), WHAT_BROKE)
def test_what_broke_is_told_by_those_it_broke_for(type_: str, message: str, category: str) -> None:
    assert classify(an_attempt(a_failed_report(message, type_=type_))) == category


@pytest.mark.parametrize(("type_", "message"), QUOTED)
def test_what_an_exception_only_quotes_explains_nothing(type_: str, message: str) -> None:
    attempt = an_attempt(a_failed_report(message, type_=type_))

    assert classify(attempt) == "internal_error"
    assert classify(attempt, EngineMode.EMULATED) == "internal_error"


def failed_of(*chain: ExceptionSeen, phase: Phase = Phase.LOAD) -> Attempt:
    return an_attempt(a_report(ready=False, failure=Failure(phase=phase, chain=chain)))


NO_MEMORY = ExceptionSeen(type="torch.OutOfMemoryError", message="CUDA out of memory.")
NO_SPACE = ExceptionSeen(type="builtins.OSError", message="[Errno 28] No space left on device")
NOVEL = ExceptionSeen(type="builtins.RuntimeError", message="never seen before")
HANDLED = replace(NO_SPACE, handled=True)


def test_what_was_only_being_handled_is_no_cause_of_what_a_rule_knows() -> None:
    attempt = failed_of(NO_MEMORY, HANDLED)

    assert classify(attempt) == "oom_weights"
    assert decisive(attempt) == NO_MEMORY
    assert classify(failed_of(NO_MEMORY, NO_SPACE)) == "no_space"


def test_what_was_being_handled_tells_more_than_what_no_rule_knows() -> None:
    assert classify(failed_of(NOVEL, HANDLED)) == "no_space"
    assert decisive(failed_of(NOVEL, HANDLED)) == HANDLED


@pytest.mark.parametrize(
    ("type_", "phase", "alone"),
    [
        ("builtins.SystemExit", Phase.LOAD, "engine_exited"),
        ("builtins.ValueError", Phase.CONFIG, "config_invalid"),
    ],
)
def test_a_rule_for_all_of_a_type_knows_less_than_any_other(
    type_: str, phase: Phase, alone: str
) -> None:
    outer = ExceptionSeen(type=type_, message="1")

    assert classify(failed_of(outer, phase=phase)) == alone
    assert classify(failed_of(outer, HANDLED, phase=phase)) == "no_space"


def test_the_first_of_a_group_that_a_rule_knows_decides() -> None:
    group = ExceptionSeen(type="builtins.ExceptionGroup", message="errors in a TaskGroup")

    assert classify(failed_of(group, NO_MEMORY, HANDLED)) == "oom_weights"
    assert classify(failed_of(group, NOVEL, HANDLED)) == "no_space"


def test_a_deadline_comes_before_any_text() -> None:
    report = a_failed_report("No available memory for the cache blocks")

    assert classify(an_attempt(report, exit=Exit(timed_out=Timeout.ATTEMPT))) == "timeout"


@pytest.mark.parametrize(
    ("ended", "category"),
    [
        (Exit(signal=signal.SIGKILL), "worker_killed"),
        (Exit(signal=signal.SIGSEGV), "segfault"),
        (Exit(signal=signal.SIGABRT), "segfault"),
        (Exit(signal=signal.SIGBUS), "bus_error"),
        (Exit(signal=signal.SIGKILL, out_of_memory=True), "oom_host"),
        (Exit(code=1), "engine_exited"),
        (Exit(code=0), "report_lost"),
        (Exit(code=70), "probe_failed"),
        (Exit(host_lost=True), "host_lost"),
    ],
)
def test_without_a_report_the_exit_decides(ended: Exit, category: str) -> None:
    assert classify(an_attempt(None, exit=ended)) == category


def test_who_ends_in_peace_while_vllm_is_imported_has_a_broken_build() -> None:
    assert classify(an_attempt(None, exit=Exit(code=0), phase=Phase.IMPORT)) == "build_broken"


def test_an_engine_killed_after_its_report_was_first_written_did_not_pass() -> None:
    """The report is written once the engine was read, and again at the end."""
    attempt = an_attempt(a_report(), exit=Exit(signal=signal.SIGKILL))

    assert classify(attempt) == "worker_killed"


@pytest.mark.parametrize("phase", [Phase.IMPORT, Phase.LOAD, Phase.GENERATE])
def test_an_engine_that_exits_in_peace_before_it_has_done_all_did_not_pass(phase: Phase) -> None:
    report = a_report(ready=phase is Phase.GENERATE, phase=phase)

    assert classify(an_attempt(report)) in {"engine_exited", "build_broken"}


def test_a_build_that_cannot_be_imported_is_broken() -> None:
    assert classify(an_attempt(None, exit=Exit(code=1), phase=Phase.IMPORT)) == "build_broken"


def test_a_check_counts_as_done_only_with_what_it_was_to_see() -> None:
    imported = a_report(ready=False, phase=Phase.TEARDOWN)

    assert classify(an_attempt(imported), check=Check.IMPORT) is None
    assert classify(an_attempt(imported), check=Check.INIT) == "engine_exited"
    unread = replace(imported, vllm_path=None)
    assert classify(an_attempt(unread), check=Check.IMPORT) == "engine_exited"


def test_a_cell_that_waited_for_a_download_did_not_simply_take_too_long() -> None:
    ended = Exit(timed_out=Timeout.PHASE)
    waiting = ("httpcore/_backends/sync.py:128 read", "huggingface_hub/file_download.py:9 get")

    assert classify(an_attempt(exit=ended, waiting=waiting)) == "download_failed"
    assert classify(an_attempt(exit=ended, waiting=("vllm/x.py:1 f",))) == "timeout"


def test_a_host_that_nobody_else_used_was_ended_by_its_cell() -> None:
    lost = an_attempt(exit=Exit(host_lost=True))

    assert classify(replace(lost, isolation=Isolation.COLD)) == "ends_its_host"


@pytest.mark.parametrize(
    ("outer", "category"),
    [
        ("huggingface_hub.errors.RepositoryNotFoundError", "repository_not_found"),
        ("huggingface_hub.errors.GatedRepoError", "gated_repo"),
    ],
)
def test_what_a_status_of_the_hub_means_is_in_the_exception_around_it(
    outer: str, category: str
) -> None:
    chain = (
        ExceptionSeen(type=outer, message="401 Client Error."),
        ExceptionSeen(type="httpx.HTTPStatusError", message="Client error '401 Unauthorized' for"),
    )
    report = a_report(ready=False, failure=Failure(phase=Phase.CONFIG, chain=chain))

    assert classify(an_attempt(report)) == category


WRAPPED = Failure(
    phase=Phase.LOAD,
    chain=(ExceptionSeen(type="Exception", message="WorkerProc initialization failed due to"),),
)


@pytest.mark.parametrize(
    ("told", "category"),
    [
        ("VllmWorker-1 was ended by SIGSEGV", "segfault"),
        ("VllmWorker-1 was ended by SIGBUS", "bus_error"),
        ("VllmWorker-1 was ended by SIGKILL", "worker_killed"),
        ("VllmWorker-1 exited with code 1", "worker_died"),
    ],
)
def test_an_engine_whose_worker_went_is_told_by_how_that_ended(told: str, category: str) -> None:
    ended = ExceptionSeen(type="jobs.probe.children.ProcessEnded", message=told)
    failure = replace(WRAPPED, chain=(ended, *WRAPPED.chain))

    assert classify(an_attempt(a_report(ready=False, failure=failure))) == category


def test_an_exception_says_more_than_how_another_process_ended() -> None:
    ended = ExceptionSeen(type="jobs.probe.children.ProcessEnded", message="x was ended by SIGTERM")
    full = ExceptionSeen(type="OSError", message="[Errno 28] No space left on device")
    failure = Failure(phase=Phase.LOAD, chain=(ended, full))

    assert classify(an_attempt(a_report(ready=False, failure=failure))) == "no_space"


def test_where_only_a_wrapper_was_caught_the_last_words_in_the_log_decide() -> None:
    report = a_report(ready=False, failure=WRAPPED)
    tail = "(Worker pid=7) ERROR 12-02 11:00:00 [x.py:1] OSError: No space left on device\nbye"

    assert classify(an_attempt(report, log_tail=tail)) == "no_space"
    assert classify(an_attempt(report)) == "unknown"


@pytest.mark.parametrize(
    ("code", "after"), [(1, "going on\n" * 20), (3, "going on\n" * 20), (3, "going on")]
)
def test_errors_that_an_engine_survived_do_not_explain_its_end(code: int, after: str) -> None:
    attempt = an_attempt(
        a_report(phase=Phase.LOAD),
        exit=Exit(code=code),
        log_tail=f"OSError: No space left on device\n{after}",
    )

    assert classify(attempt) == "engine_exited"
    assert decisive(attempt) is None


def test_what_may_be_tried_again_is_not_deterministic() -> None:
    for name, category in taxonomy().categories.items():
        assert category.deterministic is (category.retry is Retry.NEVER) or name == "timeout"


def test_the_docs_list_every_category_as_the_rules_have_it() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text()

    for name, category in taxonomy().categories.items():
        assert f"| `{name}` | {category.owner} |" in docs
        assert f"| {category.next} |" in docs


def test_an_unknown_failure_on_the_first_step_says_so() -> None:
    report = a_failed_report("shape '[-1, 384]' is invalid", phase=Phase.GENERATE)

    assert classify(an_attempt(report)) == "first_step_failed"


# Of emulated engines: texts of torch, Python and transformers, shortened.
LIMITS = [
    ("RuntimeError", "Tensor.item() cannot be called on meta tensors"),
    ("NotImplementedError", "Cannot copy out of meta tensor; no data!"),
    ("AssertionError", "Torch not compiled with CUDA enabled"),
    ("RuntimeError", "Tried to instantiate dummy base class CUDAGraph"),
    ("builtins.ImportError", "cannot import name 'x' from 'vllm._C' (unknown location)"),
    ("jobs.probe.emulation.limits.EmulationLacks", "torch.cuda.x: nothing runs here"),
    (
        "NotImplementedError",
        "Could not run 'aten::_local_scalar_dense' with arguments from the 'Meta' backend.",
    ),
    (
        "RuntimeError",
        "Expected all tensors to be on the same device, but found two devices, meta and cpu!",
    ),
    ("AttributeError", "'_OpNamespace' '_C' object has no attribute 'rms_norm'"),
    ("RuntimeError", "Found no NVIDIA driver on your system."),
    ("RuntimeError", "0 active drivers ([]). There should only be one."),
    ("builtins.ModuleNotFoundError", "No module named 'torchvision'"),
    ("builtins.ModuleNotFoundError", "No module named 'vllm._C_stable_libtorch'"),
    ("builtins.ImportError", "cannot import name 'x' from 'flashinfer.cute_dsl'"),
]


@pytest.mark.parametrize(("type_", "message"), LIMITS)
def test_what_only_an_emulated_engine_stumbles_over_is_no_finding(type_: str, message: str) -> None:
    attempt = an_attempt(a_failed_report(message, type_=type_))

    assert classify(attempt, EngineMode.EMULATED) == "emulation_limit"
    assert classify(attempt) != "emulation_limit"


@pytest.mark.parametrize(("message", "category"), MESSAGES)
def test_what_vllm_says_is_as_true_of_an_emulated_engine(message: str, category: str) -> None:
    assert classify(an_attempt(a_failed_report(message)), EngineMode.EMULATED) == category


def test_a_patch_that_imports_what_vllm_does_not_have_is_no_limit_of_the_emulation() -> None:
    report = a_failed_report(
        "cannot import name 'x' from 'vllm.utils'", type_="builtins.ImportError"
    )

    assert classify(an_attempt(report), EngineMode.EMULATED) == "internal_error"


def test_a_limit_of_the_emulation_counts_wherever_it_is_in_the_chain() -> None:
    limit = ExceptionSeen(type="jobs.probe.emulation.limits.EmulationLimit", message="vllm._C.gemm")
    caught = ExceptionSeen(type="builtins.KeyError", message="gemm")
    attempt = failed_of(limit, caught, phase=Phase.CONFIG)

    assert classify(attempt, EngineMode.EMULATED) == "emulation_limit"
    assert decisive(attempt) == limit


def test_a_host_that_dies_of_a_missing_package_names_its_last_exception() -> None:
    attempt = an_attempt(
        None,
        exit=Exit(code=1),
        phase=Phase.IMPORT,
        log_tail="Traceback:\n  File x\nModuleNotFoundError: No module named 'amdsmi'\n",
    )

    assert classify(attempt, EngineMode.EMULATED) == "emulation_limit"
    assert classify(attempt) == "build_broken"


def test_a_healthy_attempt_has_no_category() -> None:
    assert classify(an_attempt(a_report())) is None


def test_every_rule_names_a_category_that_is_described() -> None:
    known = taxonomy().categories

    assert {rule.category for rule in taxonomy().rules} <= set(known)
    assert all(category.next for category in known.values())
