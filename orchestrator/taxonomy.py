"""The kinds of failure, who owns them, and which are worth another try: rules/failures.yaml."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
import yaml

from jobs.contract.seen import ExceptionSeen
from jobs.contract.terms import STRICT, EngineMode, Phase

FILE = Path(__file__).parent / "rules" / "failures.yaml"

EMULATION_LIMIT = "emulation_limit"
"""What the emulation can't do. It says nothing about vLLM."""

FOREIGN_BACKEND = "foreign_backend"
"""An emulated engine starts with what the real card has no kernels for."""

PREDICTION_DIFFERS = "prediction_differs"
"""An emulated engine and the real card did not do the same."""

WORKERS_DISAGREE = "workers_disagree"
"""Ranks of one engine have different things where they should have the same."""

UNEXPLAINED = frozenset({"internal_error", "first_step_failed"})
"""An exception that no rule knows."""


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
    type: re.Pattern[str] = re.compile(r"^(?!.*\b(Attribute|Index|Key|Name)Error$)")
    """Unless said otherwise, any but those whose message is no sentence, but a name of the code."""

    message: re.Pattern[str] = re.compile("")
    where: re.Pattern[str] = re.compile("")
    phase: Phase | None = None
    emulated: bool = False
    """Only where the engine is emulated: for what a real one can't stumble over."""

    vague: bool = False
    """It says little: any other exception of a chain that a rule knows says more."""

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
    echoes: tuple[re.Pattern[str], ...]
    signals: dict[str, str] = field(default_factory=dict)


@cache
def taxonomy() -> Taxonomy:
    return pydantic.TypeAdapter(Taxonomy).validate_python(yaml.safe_load(FILE.read_text()))


def is_refusal(category: str) -> bool:
    """Whether vLLM looked at the request and said no, rather than broke on it."""
    return taxonomy().categories[category].refusal


def is_of_the_cluster(category: str | None) -> bool:
    """Whether the failure is one of the node's, whatever cell it met."""
    return category is not None and taxonomy().categories[category].owner == "cluster"


def says_nothing_of_vllm(category: str | None) -> bool:
    """Whether the failure neither predicts nor shows what vLLM does on a card."""
    if category is None:
        return False
    owner = taxonomy().categories[category].owner
    return category == FOREIGN_BACKEND or owner in {"cluster", "vllm-matrix", "unknown"}
