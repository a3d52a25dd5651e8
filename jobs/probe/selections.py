"""What vLLM's attention selector was asked in this process, and what it answered."""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jobs.contract.seen import Rejection

SELECT = "_cached_get_attn_backend"
"""What all of vLLM's layers call in the end, in the module of the selector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    asked: str | None
    """The backend that was requested, if one was."""

    config: Any
    """vLLM's selector configuration, a named tuple."""

    num_heads: int | None
    said: tuple[str, ...] = ()
    """What was logged meanwhile."""

    engine: Any = None
    """The engine's configuration at that time, which some backends look at."""

    @property
    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = self.config._asdict()
        return fields

    def is_as(self, other: "Question") -> bool:
        return (self.asked, self.config, self.num_heads) == (
            other.asked,
            other.config,
            other.num_heads,
        )


@dataclass(frozen=True, slots=True)
class Selections:
    """Grows while an engine is built: layers select their backends one after the other."""

    seen: list[Question] = field(default_factory=list)
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
            question = _question([*args, *kwargs.values()], kwargs.get("num_heads"), tuple(said))
            if question and (said or not any(map(question.is_as, selections.seen))):
                selections.seen.append(question)

    observed.observed = True  # type: ignore[attr-defined]  # the mark that it is ours
    return observed


def _question(
    arguments: list[Any], num_heads: int | None, said: tuple[str, ...]
) -> Question | None:
    """The arguments by what they are: vLLM has moved and renamed them between versions."""
    from vllm.config import get_current_vllm_config

    configs = [argument for argument in arguments if hasattr(argument, "_asdict")]
    backends = [argument.name for argument in arguments if hasattr(argument, "name")]
    if not configs:
        return None
    return Question(
        asked=backends[0] if backends else None,
        config=configs[0],
        num_heads=num_heads,
        said=said,
        engine=get_current_vllm_config(),
    )


def _observed_trial(try_all: Callable[..., Any], selections: Selections) -> Callable[..., Any]:
    @functools.wraps(try_all)
    def observed(*args: Any, **kwargs: Any) -> Any:
        valid, invalid = try_all(*args, **kwargs)
        selections.passed_over.extend(
            Rejection(backend=backend.name, reasons=reasons(said), said_by="selection")
            for backend, said in invalid.items()
        )
        return valid, invalid

    return observed


def reasons(said: Any) -> tuple[str, ...]:
    """As a trial gives them: CUDA's platform puts a priority before them, ROCm's does not."""
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
