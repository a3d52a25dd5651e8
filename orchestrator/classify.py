"""
Which kind of failure an attempt shows. The kinds are data: rules/failures.yaml.

The order of evidence: a deadline that passed; the innermost exception, captured where it was
raised; how the process ended, and whether the kernel says that memory ran out; the phase. The
log is read only where an engine died without any of these.
"""

import re
import signal
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
import yaml

from jobs.contract import (
    STRICT,
    Attempt,
    Check,
    EngineMode,
    ExceptionSeen,
    Failure,
    Isolation,
    Phase,
)

FILE = Path(__file__).parent / "rules" / "failures.yaml"

EMULATION_LIMIT = "emulation_limit"
"""What the emulation can't do. It says nothing about vLLM."""

FOREIGN_BACKEND = "foreign_backend"
"""An emulated engine starts with what the real card has no kernels for."""

PREDICTION_DIFFERS = "prediction_differs"
"""An emulated engine and the real card did not do the same."""

UNEXPLAINED = frozenset({"internal_error", "first_step_failed"})
"""An exception that no rule knows."""

PROBE_BROKE = 70
"""Exit code of a probe that raised outside of the engine."""

END_LINES = 6

LAST_WORDS = re.compile(
    # What vLLM puts before each line of a process: `(Worker pid=7) ERROR 12-02 11:00:00 [x.py:1] `
    r"^(?:\([^)]*\) )*(?:[A-Z]+ \S+ \S+ \[[^\]]+\] )?"
    r"(Fatal Python error|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|NotFound)): "
    r"(.*)$",
    re.MULTILINE,
)
"""An exception as Python prints it below its traceback."""


class Retry(StrEnum):
    """Whether a cell that failed so is tried again."""

    NEVER = "never"
    ONCE = "once"
    AGAIN = "again"
    """Until it has had all its attempts."""

    FRESH_HOST = "fresh_host"
    """Once, in a host of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    owner: Literal["user", "vllm", "cluster", "model", "vllm-matrix", "unknown"]
    next: str
    refusal: bool = False
    deterministic: bool = True
    retry: Retry = Retry.NEVER


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    category: str
    type: re.Pattern[str] = re.compile("")
    message: re.Pattern[str] = re.compile("")
    where: re.Pattern[str] = re.compile("")
    phase: Phase | None = None
    emulated: bool = False
    """Only where the engine is emulated: for what a real one can't stumble over."""

    def fits(self, seen: ExceptionSeen, phase: Phase, mode: EngineMode) -> bool:
        return (
            self.phase in {None, phase}
            and (mode is EngineMode.EMULATED or not self.emulated)
            and self.type.search(seen.type) is not None
            and self.message.search(seen.message) is not None
            and self.where.search(seen.where or "") is not None
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingRule:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    category: str
    where: re.Pattern[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taxonomy:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    categories: dict[str, Category]
    rules: tuple[Rule, ...]
    waiting: tuple[WaitingRule, ...]
    wrappers: tuple[re.Pattern[str], ...]
    signals: dict[str, str] = field(default_factory=dict)


@cache
def taxonomy() -> Taxonomy:
    return pydantic.TypeAdapter(Taxonomy).validate_python(yaml.safe_load(FILE.read_text()))


def classify(
    attempt: Attempt, mode: EngineMode = EngineMode.REAL, check: Check = Check.INIT
) -> str | None:
    """The category of the attempt's failure, or None if the probe did all it was asked."""
    if attempt.exit.timed_out:
        return _by_waiting(attempt.waiting)
    if attempt.report is not None and (failure := attempt.report.failure) is not None:
        return _by_exception(failure, mode) or _by_end(attempt, failure.phase, mode)
    if did_all(attempt, check):
        return None
    return _by_end(attempt, attempt.phase, mode)


def did_all(attempt: Attempt, check: Check) -> bool:
    """Whether the probe came to the end of what it was asked, and ended in peace."""
    report = attempt.report
    if report is None or report.phase is not Phase.TEARDOWN or attempt.exit.code != 0:
        return False
    return report.vllm_path is not None if check is Check.IMPORT else report.ready


def says_something(seen: ExceptionSeen) -> bool:
    """More than that another process failed."""
    return not any(wrapper.search(seen.message) for wrapper in taxonomy().wrappers)


def root(failure: Failure) -> ExceptionSeen:
    """
    The innermost exception that says more than that another process failed; a limit of the
    emulation says most, whatever came of it.
    """
    told = [*filter(says_something, reversed(failure.chain))] or [failure.root]
    return next(filter(_is_limit, told), told[0])


def last_words(log_tail: str) -> tuple[ExceptionSeen, ...]:
    """Exceptions that the log shows, in its order, without those that name no cause."""
    found = LAST_WORDS.finditer(log_tail)
    words = (ExceptionSeen(type=each[1], message=each[2]) for each in found)
    return tuple(filter(says_something, words))


def is_refusal(category: str) -> bool:
    """Whether vLLM looked at the request and said no, rather than broke on it."""
    return taxonomy().categories[category].refusal


def says_nothing_of_vllm(category: str | None) -> bool:
    """Whether the failure neither predicts nor shows what vLLM does on a card."""
    if category is None:
        return False
    owner = taxonomy().categories[category].owner
    return category == FOREIGN_BACKEND or owner in {"cluster", "vllm-matrix", "unknown"}


def _by_waiting(frames: tuple[str, ...]) -> str:
    waits = (rule for rule in taxonomy().waiting if any(map(rule.where.search, frames)))
    return next((rule.category for rule in waits), "timeout")


def _by_exception(failure: Failure, mode: EngineMode) -> str | None:
    """None where the exceptions only say that another process failed."""
    chain = tuple(filter(says_something, failure.chain))
    if not chain:
        return None
    unexplained = "first_step_failed" if failure.phase is Phase.GENERATE else "internal_error"
    return _by_rule(chain, failure.phase, mode) or unexplained


def _by_rule(chain: tuple[ExceptionSeen, ...], phase: Phase, mode: EngineMode) -> str | None:
    """The innermost exception decides; an outer one only where no rule knows the inner."""
    if any(map(_is_limit, chain)):
        return EMULATION_LIMIT
    for seen in reversed(chain):
        for rule in taxonomy().rules:
            if rule.fits(seen, phase, mode):
                return rule.category
    return None


def _is_limit(seen: ExceptionSeen) -> bool:
    return seen.type.rsplit(".", 1)[-1] == "EmulationLimit"


def _by_end(attempt: Attempt, phase: Phase, mode: EngineMode) -> str:
    """How the process ended, and what the log says where that leaves open why."""
    end = attempt.exit
    if end.host_lost:
        return "ends_its_host" if attempt.isolation is Isolation.COLD else "host_lost"
    if end.out_of_memory:
        return "oom_host"
    if end.signal is not None:
        return taxonomy().signals.get(signal.Signals(end.signal).name, "worker_killed")
    if attempt.report is not None and attempt.report.failure is not None:
        return _by_rule(last_words(attempt.log_tail), phase, mode) or "unknown"
    if attempt.report is None and end.code == 0:
        return "report_lost"
    return _by_rule(last_words(_end_of(attempt.log_tail)), phase, mode) or _by_code(attempt)


def _end_of(log_tail: str) -> str:
    """Where the exception stands that a process died of; those before it were survived."""
    return "\n".join(log_tail.strip().splitlines()[-END_LINES:])


def _by_code(attempt: Attempt) -> str:
    if attempt.exit.code == PROBE_BROKE:
        return "probe_failed"
    return "build_broken" if attempt.phase is Phase.IMPORT else "engine_exited"
