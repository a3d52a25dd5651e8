"""Results of emulated engines that say nothing about the card they were emulated for."""

import pytest

from jobs.contract.seen import AttentionGroup, MoeGroup
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, Expectation, RequestVerdict
from orchestrator.concluded.judge import Judgement, Verdict, judge
from tests.builders import (
    EAGLE3,
    H100,
    MI300X,
    a_build,
    a_report,
    an_attempt,
    an_emulated_cell,
    an_emulated_report,
    groups,
)

AITER_FA = "vllm.v1.attention.backends.rocm_aiter_fa.AiterFlashAttentionBackend"


def target(backend: str | None = None, **more: str) -> Asked:
    return Asked(attention_backend=backend, **more)


def on_mi300x(*, assumed: tuple[str, ...] = ("aiter",)) -> Judgement:
    cell = an_emulated_cell("mi300x-emulated/llama/auto/v0_32_gpu", hardware=MI300X)
    group = AttentionGroup(
        kv_group=0, backend="FLASH_ATTN", class_path=AITER_FA, layers=2, layer_names=("a", "b")
    )
    report = an_emulated_report(cell, target=(group,), assumed=assumed)
    return judge(cell, a_build(), an_attempt(report))


def got(cell: Cell, *backends: str) -> Judgement:
    report = an_emulated_report(cell, target=groups(*backends))
    return judge(cell, a_build(), an_attempt(report))


def test_what_the_cards_vendor_has_kernels_for_passes() -> None:
    judgement = got(an_emulated_cell(target=target("TRITON_ATTN")), "TRITON_ATTN")

    assert judgement.verdict is Verdict.PASSED
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.HONOURED


@pytest.mark.parametrize(
    ("hardware", "backend"),
    [(H100, "ROCM_ATTN"), (H100, "CPU_ATTN"), (H100, "XPU_MLA_SPARSE"), (MI300X, "FLASHINFER")],
)
def test_a_backend_of_another_vendor_is_neither_supported_nor_honoured(
    hardware: object, backend: str
) -> None:
    judgement = got(an_emulated_cell(target=target(backend), hardware=hardware), backend)

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "foreign_backend")
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.UNSEEN


def test_a_foreign_backend_is_no_refusal_that_a_suite_can_expect() -> None:
    expect = Expectation(outcome=("runs", "refused", "fails"))

    judgement = got(an_emulated_cell(target=target("ROCM_ATTN"), expect=expect), "ROCM_ATTN")

    assert judgement.reasons == (
        "target.attention_backend: ROCM_ATTN has no kernels for cards of nvidia such as h100",
    )


def test_a_real_engine_has_shown_what_it_can() -> None:
    cell = an_emulated_cell(target=target("ROCM_ATTN"))
    report = a_report(target=groups("ROCM_ATTN"))

    assert judge(cell, a_build(), an_attempt(report)).verdict is Verdict.PASSED


def test_the_draft_and_the_experts_are_looked_at_too() -> None:
    cell = an_emulated_cell(
        draft=Asked(attention_backend="ROCM_ATTN"), speculative=EAGLE3, moe=True
    )
    experts = MoeGroup(backend="AITER", experts_class="x.AiterExperts", quant_method="q", layers=1)
    report = an_emulated_report(
        cell, target=groups("FLASH_ATTN"), draft=groups("ROCM_ATTN"), target_moe=(experts,)
    )

    judgement = judge(cell, a_build(), an_attempt(report))

    assert [reason.split(":")[0] for reason in judgement.reasons] == [
        "draft.attention_backend",
        "target.moe_backend",
    ]


def test_a_result_that_rests_on_a_pretended_package_is_an_emulation_limit() -> None:
    judgement = on_mi300x()

    assert (judgement.verdict, judgement.category) == (Verdict.FAILED, "emulation_limit")
    assert "rests on aiter, which is only pretended" in judgement.reasons[0]


def test_the_same_result_passes_where_nothing_is_pretended() -> None:
    assert on_mi300x(assumed=()).verdict is Verdict.PASSED


def test_a_backend_that_no_rule_knows_is_not_supported_because_it_was_asked_for() -> None:
    judgement = got(an_emulated_cell(target=target("BRAND_NEW")), "BRAND_NEW")

    assert judgement.category == "emulation_limit"
    assert got(an_emulated_cell(), "BRAND_NEW").verdict is Verdict.PASSED


def test_a_request_that_vllm_drops_is_dropped_on_the_real_card_too() -> None:
    cell = an_emulated_cell(target=target("TRITON_ATTN"))

    judgement = got(cell, "CPU_ATTN")

    assert judgement.category == "silent_fallback"
    assert judgement.requests["target.attention_backend"].verdict is RequestVerdict.DROPPED
