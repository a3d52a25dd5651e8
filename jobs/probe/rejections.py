"""Why vLLM did not take a backend, in its own words."""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from jobs.contract.seen import ExceptionSeen, Rejection
from jobs.probe import backends, selections

REFUSALS = (
    re.compile(
        r"Selected backend (?:\w+\.)?(?P<backend>\w+) is not valid.*?Reason: (?P<reason>.+)",
        re.DOTALL,
    ),
    re.compile(r"MoE backend (?P<backend>\w+) does not support.* since (?P<reason>.+)", re.DOTALL),
    re.compile(r"(?P<reason>Unknown attention backend: '(?P<backend>\w+)')"),
    re.compile(r"moe_backend='(?P<backend>\w+)' (?P<reason>is not supported for .+)", re.DOTALL),
)
"""Errors that name one backend."""

ALL_REFUSED = re.compile(r"No valid attention backend found .*Reasons: \{(?P<each>.*)\}", re.DOTALL)
EACH_REFUSED = re.compile(r"(?P<backend>\w+): \[(?P<reasons>[^\]]*)\]")


def of_this_process(*, taken: Collection[str] = ()) -> tuple[Rejection, ...]:
    """What this process can say about every attention backend but those in *taken*."""
    seen = selections.HERE.seen
    rejections = (*_said(seen), *selections.HERE.passed_over, *_validated(seen))
    return merged(rejection for rejection in rejections if rejection.backend not in taken)


def of_error(chain: Iterable[ExceptionSeen]) -> tuple[Rejection, ...]:
    """What the refusal itself says."""
    return merged(itertools.chain.from_iterable(_refused(link.message) for link in chain))


def merged(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """One for each backend and source, with all of its reasons, in the order they came up."""
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for rejection in rejections:
        key = (rejection.backend, rejection.said_by)
        reasons.setdefault(key, {}).update(dict.fromkeys(rejection.reasons))
    return tuple(
        _rejection(backend, tuple(found), said_by) for (backend, said_by), found in reasons.items()
    )


def _refused(message: str) -> Iterator[Rejection]:
    for refusal in filter(None, (pattern.search(message) for pattern in REFUSALS)):
        yield _rejection(refusal["backend"], [refusal["reason"].strip()], "error")
    for everything in ALL_REFUSED.finditer(message):
        for refusal in EACH_REFUSED.finditer(everything["each"]):
            yield _rejection(refusal["backend"], refusal["reasons"].split(", "), "error")


def _said(seen: Iterable[selections.Question]) -> Iterator[Rejection]:
    """What was logged about the backend that was asked for, while selecting."""
    for selection in seen:
        if selection.asked is not None:
            about = [line for line in selection.said if selection.asked in line]
            yield from [_rejection(selection.asked, about, "selection")] if about else []


def _validated(seen: Sequence[selections.Question]) -> list[Rejection]:
    """Ask each backend's own class about each configuration that was selected for."""
    if not seen:
        return []
    from vllm.platforms import current_platform

    capability = current_platform.get_device_capability()
    # The questions import as much as the classes do.
    with backends.of_this_platform_only():
        return [
            _rejection(member.name, reasons, "validation")
            for selection in seen
            for member in backends.members()
            if (reasons := reasons_of(member, selection.fields | {"device_capability": capability}))
        ]


def reasons_of(member: Any, config: dict[str, Any]) -> tuple[str, ...]:
    """Why the backend can't serve this configuration; none: it can."""
    # Importing a backend for other hardware may fail in any way, and so may asking it
    # about this hardware; how it fails is why it can't be taken.
    try:
        backend = member.get_class()
    except Exception as error:  # noqa: BLE001
        return (f"cannot be imported: {type(error).__name__}: {error}",)
    try:
        return tuple(backend.validate_configuration(**config))
    except Exception as error:  # noqa: BLE001
        return (f"cannot say: {type(error).__name__}: {error}",)


def _rejection(backend: str, reasons: Iterable[str], said_by: str) -> Rejection:
    return Rejection(backend=backend, reasons=tuple(reasons), said_by=said_by)
