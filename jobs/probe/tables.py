"""The selector's whole answer to each question that the layers asked: who would serve, who not."""

from collections.abc import Callable, Iterable
from typing import Any

from jobs.contract.seen import Rejection, Selection
from jobs.probe import backends, rejections
from jobs.probe.selections import Question, reasons

TRY_ALL = "get_valid_backends"
"""A platform's method, where it tries its backends in turn; the CPU's takes the one it has."""


def of_all(questions: Iterable[Question]) -> tuple[Selection, ...]:
    from vllm.platforms import current_platform

    try_all = getattr(current_platform, TRY_ALL, None)
    if try_all is None:
        return ()
    try_all = getattr(try_all, "__wrapped__", try_all)
    different: list[Question] = []
    for question in questions:
        if not any(map(question.is_as, different)):
            different.append(question)
    with backends.of_this_platform_only():
        return tuple(_table(question, try_all) for question in different)


def _table(question: Question, try_all: Callable[..., Any]) -> Selection:
    from vllm.config import set_current_vllm_config
    from vllm.platforms import current_platform

    capability = current_platform.get_device_capability()
    with set_current_vllm_config(question.engine):
        valid, invalid = try_all(capability, question.config, question.num_heads)
        accepted = [_name(candidate) for candidate in valid]
        rejected = [_rejection(backend.name, reasons(said)) for backend, said in invalid.items()]
        asked = _asked_besides(question, {*accepted, *(each.backend for each in rejected)})
        if asked is not None:
            said = rejections.reasons_of(asked, question.fields | {"device_capability": capability})
            if said:
                rejected.append(_rejection(asked.name, said))
            else:
                accepted.append(asked.name)
    return Selection(
        asked=question.asked,
        question=_as_text(question),
        accepted=tuple(accepted),
        rejected=tuple(rejected),
    )


def _asked_besides(question: Question, tried: set[str]) -> Any:
    """The backend that was asked for, where the platform would not have tried it by itself."""
    asked = [member for member in backends.members() if member.name == question.asked]
    return asked[0] if asked and question.asked not in tried else None


def _as_text(question: Question) -> dict[str, str]:
    """What is said of the layer; there are many things that it could be and is not."""
    fields = question.fields | {"num_heads": question.num_heads}
    return {
        name: str(getattr(value, "value", value)).removeprefix("torch.")
        for name, value in fields.items()
        if value is not None and value is not False
    }


def _name(candidate: Any) -> str:
    """Of a tuple around the enum's member; which place it has depends on the version."""
    return str(getattr(candidate, "backend", candidate[0]).name)


def _rejection(backend: str, said: Iterable[str]) -> Rejection:
    return Rejection(backend=backend, reasons=tuple(said), said_by="validation")
