"""Which kind of failure an attempt shows. The kinds are data: rules/failures.yaml."""

import re
import signal
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
import yaml

from jobs.contract import STRICT, Attempt, EngineMode, ExceptionSeen, Phase

FILE = Path(__file__).parent / "rules" / "failures.yaml"

EMULATION_LIMIT = "emulation_limit"
"""What the emulation can't do. It says nothing about vLLM."""

FOREIGN_BACKEND = "foreign_backend"
"""An emulated engine starts with what the real card has no kernels for."""

PREDICTION_DIFFERS = "prediction_differs"
"""An emulated engine and the real card did not do the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    owner: Literal["user", "vllm", "cluster", "model", "vllm-matrix"]
    next: str
    refusal: bool = False
    again: bool = False


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
class Taxonomy:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    categories: dict[str, Category]
    rules: tuple[Rule, ...]


@cache
def taxonomy() -> Taxonomy:
    return pydantic.TypeAdapter(Taxonomy).validate_python(yaml.safe_load(FILE.read_text()))


def classify(attempt: Attempt, mode: EngineMode = EngineMode.REAL) -> str | None:
    """The category of the attempt's failure, or None if the probe did all it was asked."""
    if attempt.exit.timed_out:
        return "timeout"
    if report := attempt.report:
        if failure := report.failure:
            return _by_rule(failure.chain, failure.phase, mode) or _by_phase(failure.phase)
        if attempt.exit.code == 0 and report.ready and report.phase is Phase.TEARDOWN:
            return None
    return _by_exit(attempt, mode)


def is_refusal(category: str) -> bool:
    """Whether vLLM looked at the request and said no, rather than broke on it."""
    return taxonomy().categories[category].refusal


def says_nothing_of_vllm(category: str | None) -> bool:
    """Whether the failure neither predicts nor shows what vLLM does on a card."""
    if category is None:
        return False
    owner = taxonomy().categories[category].owner
    return category == FOREIGN_BACKEND or owner in ("cluster", "vllm-matrix")


def _by_rule(chain: tuple[ExceptionSeen, ...], phase: Phase, mode: EngineMode) -> str | None:
    """The innermost exception decides; an outer one only where no rule knows the inner."""
    if any(seen.type.rsplit(".", 1)[-1] == "EmulationLimit" for seen in chain):
        return EMULATION_LIMIT
    for seen in reversed(chain):
        for rule in taxonomy().rules:
            if rule.fits(seen, phase, mode):
                return rule.category
    return None


def _by_phase(phase: Phase) -> str:
    return "first_step_failed" if phase is Phase.GENERATE else "internal_error"


def _by_exit(attempt: Attempt, mode: EngineMode) -> str:
    match attempt.exit.signal:
        case signal.SIGKILL:
            return "worker_killed"
        case signal.SIGSEGV | signal.SIGABRT | signal.SIGBUS | signal.SIGILL | signal.SIGFPE:
            return "segfault"
        case None if attempt.phase is Phase.IMPORT:
            return _by_rule(_last_words(attempt), Phase.IMPORT, mode) or "build_broken"
        case _:
            return "worker_died"


def _last_words(attempt: Attempt) -> tuple[ExceptionSeen, ...]:
    """The exception that a host died of, as Python prints it at the end of its traceback."""
    lines = re.findall(r"^([A-Za-z_][\w.]*): (.*)$", attempt.log_tail, re.MULTILINE)
    return tuple(ExceptionSeen(type=kind, message=message) for kind, message in lines[-1:])
