"""Which kind of failure an attempt shows. The kinds are data: rules/failures.yaml."""

import re
import signal
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
import yaml

from jobs.contract import STRICT, Attempt, ExceptionSeen, Phase

FILE = Path(__file__).parent / "rules" / "failures.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    owner: Literal["user", "vllm", "cluster", "model"]
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

    def fits(self, seen: ExceptionSeen, phase: Phase) -> bool:
        return (
            self.phase in {None, phase}
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


def classify(attempt: Attempt) -> str | None:
    """The category of the attempt's failure, or None if the probe did all it was asked."""
    if attempt.exit.timed_out:
        return "timeout"
    if report := attempt.report:
        if failure := report.failure:
            return _by_rule(failure.chain, failure.phase) or _by_phase(failure.phase)
        if attempt.exit.code == 0:
            return None
    return _by_exit(attempt)


def is_refusal(category: str) -> bool:
    """Whether vLLM looked at the request and said no, rather than broke on it."""
    return taxonomy().categories[category].refusal


def _by_rule(chain: tuple[ExceptionSeen, ...], phase: Phase) -> str | None:
    """The innermost exception decides; an outer one only where no rule knows the inner."""
    for seen in reversed(chain):
        for rule in taxonomy().rules:
            if rule.fits(seen, phase):
                return rule.category
    return None


def _by_phase(phase: Phase) -> str:
    return "first_step_failed" if phase is Phase.GENERATE else "internal_error"


def _by_exit(attempt: Attempt) -> str:
    match attempt.exit.signal:
        case signal.SIGKILL:
            return "worker_killed"
        case signal.SIGSEGV | signal.SIGABRT | signal.SIGBUS | signal.SIGILL | signal.SIGFPE:
            return "segfault"
        case None if attempt.phase is Phase.IMPORT:
            return "build_broken"
        case _:
            return "worker_died"
