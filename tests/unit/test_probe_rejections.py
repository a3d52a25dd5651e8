"""Why vLLM did not take a backend."""

from jobs.contract.seen import ExceptionSeen, Rejection
from jobs.probe import rejections


def said(message: str) -> tuple[Rejection, ...]:
    return rejections.of_error([ExceptionSeen(type="builtins.ValueError", message=message)])


def refused(backend: str, *reasons: str) -> Rejection:
    return Rejection(backend=backend, reasons=reasons, said_by="error")


def test_the_refusal_of_a_requested_attention_backend_names_it() -> None:
    message = (
        "Selected backend AttentionBackendEnum.FLASHINFER is not valid for this configuration. "
        "Reason: ['head_size not supported']"
    )

    assert said(message) == (refused("FLASHINFER", "['head_size not supported']"),)


def test_when_no_backend_is_left_each_has_its_reasons() -> None:
    message = (
        "No valid attention backend found for cuda with Config(head_size=20). "
        "Reasons: {FLASH_ATTN: [head_size not supported, dtype not supported], "
        "TRITON_ATTN: [head_size not supported]}."
    )

    assert said(message) == (
        refused("FLASH_ATTN", "head_size not supported", "dtype not supported"),
        refused("TRITON_ATTN", "head_size not supported"),
    )


def test_the_refusal_of_a_moe_backend_names_it() -> None:
    message = (
        "Unquantized MoE backend TRITON does not support the deployment configuration "
        "since kernel does not support current device cpu."
    )

    assert said(message) == (refused("TRITON", "kernel does not support current device cpu."),)


def test_an_unknown_name_is_a_refusal_too() -> None:
    assert said("Unknown attention backend: 'NOPE'. Valid options are: A, B") == (
        refused("NOPE", "Unknown attention backend: 'NOPE'"),
    )


def test_an_error_about_something_else_rejects_nothing() -> None:
    assert said("out of memory") == ()


def test_a_process_that_selected_nothing_has_nothing_to_say() -> None:
    assert rejections.of_this_process() == ()


def test_reasons_of_one_backend_come_together_once_each() -> None:
    assert rejections.merged(
        [refused("A", "x"), refused("B", "x"), refused("A", "y"), refused("A", "x")]
    ) == (refused("A", "x", "y"), refused("B", "x"))
