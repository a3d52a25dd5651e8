"""What vLLM's attention selector was asked in this process, and what it answered."""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jobs.contract import Rejection

SELECT = "_cached_get_attn_backend"
"""What all of vLLM's layers call in the end, in the module of the selector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    asked: str | None
    """The backend that was requested, if one was."""

    config: dict[str, Any]
    """vLLM's selector configuration, by field."""

    said: tuple[str, ...]
    """What was logged meanwhile."""


@dataclass(frozen=True, slots=True)
class Selections:
    """Grows while an engine is built: layers select their backends one after the other."""

    seen: list[Selection] = field(default_factory=list)
    passed_over: list[Rejection] = field(default_factory=list)
    """By a platform that tries its backends in turn."""


HERE = Selections()
"""Of this process. vLLM calls the selector from deep inside; there is nobody to hand it to."""


def observe() -> None:
    """Follow the selector of this process. Doing it twice is the same as once."""
    from vllm.platforms import current_platform
    from vllm.v1.attention import selector

    select = getattr(selector, SELECT)
    if hasattr(select, "observed"):
        return
    setattr(selector, SELECT, _observed(select, HERE))
    platform = type(current_platform)
    if hasattr(platform, "get_valid_backends"):
        trial = _observed_trial(platform.get_valid_backends, HERE)
        platform.get_valid_backends = staticmethod(trial)


def _observed(select: Callable[..., Any], selections: Selections) -> Callable[..., Any]:
    @functools.wraps(select)
    def observed(*args: Any, **kwargs: Any) -> Any:
        said: list[str] = []
        try:
            with _listening(said):
                return select(*args, **kwargs)
        finally:
            selection = _selection([*args, *kwargs.values()], tuple(said))
            if all(selection.config != earlier.config for earlier in selections.seen) or said:
                selections.seen.append(selection)

    observed.observed = True  # type: ignore[attr-defined]  # the mark that it is ours
    return observed


def _selection(arguments: list[Any], said: tuple[str, ...]) -> Selection:
    """The arguments by what they are: vLLM has moved and renamed them between versions."""
    configs = [argument._asdict() for argument in arguments if hasattr(argument, "_asdict")]
    backends = [argument.name for argument in arguments if hasattr(argument, "name")]
    return Selection(
        asked=backends[0] if backends else None, config=configs[0] if configs else {}, said=said
    )


def _observed_trial(try_all: Callable[..., Any], selections: Selections) -> Callable[..., Any]:
    @functools.wraps(try_all)
    def observed(*args: Any, **kwargs: Any) -> Any:
        valid, invalid = try_all(*args, **kwargs)
        selections.passed_over.extend(
            Rejection(backend=backend.name, reasons=_reasons(said), said_by="selection")
            for backend, said in invalid.items()
        )
        return valid, invalid

    return observed


def _reasons(said: Any) -> tuple[str, ...]:
    """CUDA's platform puts a priority before them, ROCm's does not."""
    return tuple(said[1] if isinstance(said, tuple) else said)


@contextlib.contextmanager
def _listening(said: list[str]) -> Iterator[None]:
    listener = logging.Handler()
    listener.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("vllm")
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
