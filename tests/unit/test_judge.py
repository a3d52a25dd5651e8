"""From a cell and what was seen to a verdict."""

import signal
from dataclasses import replace
from typing import Any

import pytest

from jobs.contract.attempts import Exit
from jobs.contract.terms import Check, EngineMode, Phase
from orchestrator.asked.config import Asked, Expectation, RequestVerdict
from orchestrator.concluded.judge import Judgement, Verdict, judge
from tests.builders import (
    EAGLE3,
    a_build,
    a_cell,
    a_failed_report,
    a_failure,
    a_report,
    an_attempt,
    groups,
)

TRITON = Asked(attention_backend="TRITON_ATTN")


def test_an_engine_that_ran_and_chose_for_itself_passes() -> None:
    judgement = judge(a_cell(), a_build(), an_attempt(a_report()))

    assert judgement.verdict is Verdict.PASSED
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.AUTOSELECTED
    assert judgement.requests["target.attention_backend"].got == "CPU_ATTN"


def test_a_request_that_vllm_replaced_without_an_error_was_dropped_and_fails() -> None:
    judgement = judge(a_cell(target=TRITON), a_build(), an_attempt(a_report()))

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "silent_fallback")
    assert judgement.reasons == (
        "target.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN",
    )


def test_a_request_that_only_some_layers_got_was_dropped() -> None:
    report = a_report(target=groups("TRITON_ATTN", "FLASH_ATTN"))

    request = judge(a_cell(target=TRITON), a_build(), an_attempt(report)).requests[
        "target.attention_backend"
    ]

    assert (request.verdict, request.got) == (RequestVerdict.DROPPED, "TRITON_ATTN, FLASH_ATTN")


def test_a_request_that_all_layers_got_was_honoured() -> None:
    report = a_report(target=groups("TRITON_ATTN", "TRITON_ATTN"))

    judgement = judge(a_cell(target=TRITON), a_build(), an_attempt(report))

    assert judgement.verdict is Verdict.PASSED
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.HONOURED


def test_the_draft_is_judged_apart_from_the_target() -> None:
    """The seed's bug: the target has what it asked for, the draft got the target's."""
    cell = a_cell(target=Asked(attention_backend="FLASHINFER"), draft=TRITON, speculative=EAGLE3)
    report = a_report(target=groups("FLASHINFER"), draft=groups("FLASHINFER"), runner="V2")

    judgement = judge(cell, a_build(), an_attempt(report))

    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.HONOURED
    assert judgement.requests["draft.attention_backend"].verdict is RequestVerdict.DROPPED
    assert judgement.category == "silent_fallback"


@pytest.mark.parametrize(
    ("runner", "verdict"),
    [("V1", RequestVerdict.AUTOSELECTED), ("V2", RequestVerdict.INHERITED)],
)
def test_an_unset_draft_inherits_on_v2_and_chooses_on_v1(
    runner: str, verdict: RequestVerdict
) -> None:
    report = a_report(draft=groups("CPU_ATTN"), runner=runner)

    judgement = judge(a_cell(speculative=EAGLE3), a_build(), an_attempt(report))

    assert judgement.requests["draft.attention_backend"].verdict is verdict
    assert judgement.verdict is Verdict.PASSED


def an_unset_draft(**cell: Any) -> Judgement:
    """Target FLASHINFER, draft FLASH_ATTN, by model runner V2."""
    report = a_report(target=groups("FLASHINFER"), draft=groups("FLASH_ATTN"), runner="V2")
    given: dict[str, Any] = {"target": Asked(attention_backend="FLASHINFER"), "speculative": EAGLE3}
    return judge(a_cell(**given | cell), a_build(), an_attempt(report))


def test_an_unset_draft_that_does_not_inherit_on_v2_breaks_the_contract() -> None:
    judgement = an_unset_draft()

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "inheritance_broken")
    assert "draft.attention_backend was autoselected" in judgement.reasons[0]


def test_an_unset_draft_may_differ_where_nothing_was_asked_for_the_target_either() -> None:
    """vLLM hands down the request, not the result: another head size has another answer."""
    assert an_unset_draft(target=Asked()).verdict is Verdict.PASSED


def test_a_draft_that_is_not_causal_need_not_inherit() -> None:
    dflash = {"method": "dflash", "model": "shipped:dflash", "num_speculative_tokens": 2}

    assert an_unset_draft(speculative=dflash).verdict is Verdict.PASSED


def test_a_draft_inherits_one_of_several_backends_of_its_target() -> None:
    report = a_report(
        target=groups("GDN_ATTN", "FLASH_ATTN"), draft=groups("FLASH_ATTN"), runner="V2"
    )

    requests = judge(a_cell(speculative=EAGLE3), a_build(), an_attempt(report)).requests

    assert requests["draft.attention_backend"].verdict is RequestVerdict.INHERITED


def refused(expect: Expectation | None = None) -> Judgement:
    report = a_failed_report("Selected backend TRITON_ATTN is not valid for this configuration.")
    cell = a_cell(target=TRITON, expect=expect)
    return judge(cell, a_build(), an_attempt(report))


def test_a_refusal_that_nobody_expected_fails() -> None:
    judgement = refused()

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "backend_unsupported")
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.REFUSED
    [reason] = judgement.reasons
    assert reason == (
        "expected that it runs, but backend_unsupported in load: ValueError: Selected backend "
        "TRITON_ATTN is not valid for this configuration."
    )


def test_a_refusal_that_was_expected_passes_and_keeps_its_category() -> None:
    judgement = refused(Expectation(outcome=("runs", "refused")))

    assert (judgement.verdict, judgement.category) == (Verdict.PASSED, "backend_unsupported")


def test_a_refusal_for_another_reason_than_expected_fails() -> None:
    judgement = refused(Expectation(outcome=("refused",), category="config_invalid"))

    assert judgement.reasons == (
        "expected the failure config_invalid, but it is backend_unsupported",
    )


@pytest.mark.parametrize("category", [None, "worker_killed"])
def test_a_failure_that_is_not_the_engines_is_expected_only_by_name(category: str | None) -> None:
    cell = a_cell(expect=Expectation(outcome=("fails",), category=category))
    killed = an_attempt(exit=Exit(signal=9))

    passed = judge(cell, a_build(), killed).verdict is Verdict.PASSED

    assert passed is (category is not None)


def test_a_failure_in_another_phase_than_expected_fails() -> None:
    judgement = refused(Expectation(outcome=("refused",), phase=Phase.CONFIG))

    assert judgement.reasons == ("expected the failure in config, but it came in load",)


def test_an_engine_that_runs_where_a_refusal_was_expected_fails() -> None:
    cell = a_cell(expect=Expectation(outcome=("refused",)))

    judgement = judge(cell, a_build(), an_attempt(a_report()))

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "expectation_unmet")
    assert judgement.reasons == ("expected that it is refused, but it ran",)


def test_a_backend_that_a_suite_expects_has_to_come() -> None:
    cell = a_cell(expect=Expectation(got={"target.attention_backend": "AMX_ATTN"}))

    judgement = judge(cell, a_build(), an_attempt(a_report()))

    assert judgement.reasons == ("target.attention_backend should be AMX_ATTN, but it is CPU_ATTN",)


def test_an_engine_that_dies_on_its_first_step_fails_but_its_backends_are_judged() -> None:
    report = a_failed_report("shape '[-1, 384]' is invalid", phase=Phase.GENERATE)

    judgement = judge(a_cell(target=TRITON), a_build(), an_attempt(report))

    assert judgement.category == "first_step_failed"
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.DROPPED


def test_requests_of_an_engine_that_was_killed_are_unseen() -> None:
    attempt = an_attempt(None, exit=Exit(signal=signal.SIGKILL))

    judgement = judge(a_cell(target=TRITON), a_build(), attempt)

    assert judgement.category == "worker_killed"
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.UNSEEN


def test_a_patched_build_whose_files_were_not_imported_fails_whatever_the_engine_did() -> None:
    build = a_build(sources={"vllm/x.py": "a" * 64})
    report = a_report(sources={"vllm/x.py": "b" * 64})

    judgement = judge(a_cell(), build, an_attempt(report))

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "build_mismatch")


def test_a_build_that_was_only_to_be_imported_passes_when_it_was() -> None:
    cell = replace(a_cell(speculative=EAGLE3), check=Check.IMPORT)
    build = a_build(sources={"vllm/x.py": "a" * 64})
    report = a_report(ready=False, phase=Phase.TEARDOWN, sources=dict(build.sources))

    judgement = judge(cell, build, an_attempt(report))

    assert (judgement.verdict, judgement.reasons) == (Verdict.PASSED, ())
    assert judgement.requests == {}


def test_an_import_of_other_files_than_the_builds_fails() -> None:
    cell = replace(a_cell(), check=Check.IMPORT)
    report = a_report(ready=False, phase=Phase.TEARDOWN, sources={"vllm/x.py": "b"})

    judgement = judge(cell, a_build(sources={"vllm/x.py": "a"}), an_attempt(report))

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "build_mismatch")


def test_a_draft_that_has_no_layers_asks_and_gets_nothing() -> None:
    judgement = judge(a_cell(speculative={"method": "ngram"}), a_build(), an_attempt(a_report()))

    assert "draft.attention_backend" not in judgement.requests
    assert judgement.verdict is Verdict.PASSED


def test_a_slip_in_a_patch_is_the_patchs_fault_not_vllms() -> None:
    build = a_build(sources={"vllm/v1/sample/sampler.py": "a"})
    failure = a_failure("invalid syntax (sampler.py, line 3)", type_="builtins.SyntaxError")
    report = a_report(ready=False, failure=failure, sources=dict(build.sources))

    assert judge(a_cell(), build, an_attempt(report)).category == "build_broken"


def test_a_refusal_that_a_patch_raises_is_a_refusal() -> None:
    build = a_build(sources={"vllm/x.py": "a"})
    failure = a_failure("Attention backend X was requested, but the CPU platform cannot use it")
    report = a_report(ready=False, failure=failure, sources=dict(build.sources))

    assert judge(a_cell(), build, an_attempt(report)).category == "backend_unsupported"


@pytest.mark.parametrize(
    ("type_", "message", "category"),
    [
        ("builtins.ModuleNotFoundError", "No module named 'flash_attn_3'", "emulation_limit"),
        (
            "builtins.ImportError",
            "cannot import name 'x' from 'vllm._C' (unknown location)",
            "emulation_limit",
        ),
        ("builtins.ImportError", "FlashInfer is not installed", "missing_package"),
        ("builtins.ModuleNotFoundError", "No module named 'vllm.utils.no'", "build_broken"),
        ("builtins.ImportError", "cannot import name 'x' from 'vllm.utils'", "build_broken"),
        ("builtins.RuntimeError", "never seen before", "patch_raised"),
    ],
)
def test_a_patch_is_to_blame_only_for_what_no_rule_knows(
    type_: str, message: str, category: str
) -> None:
    cell = replace(a_cell(), engine_mode=EngineMode.EMULATED)
    build = a_build(sources={"vllm/x.py": "a"})
    failure = a_failure(message, type_=type_)
    report = a_report(ready=False, failure=failure, sources=dict(build.sources))
    report = replace(report, engine_mode=EngineMode.EMULATED)

    assert judge(cell, build, an_attempt(report)).category == category
