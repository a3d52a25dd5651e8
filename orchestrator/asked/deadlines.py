"""How long an attempt may take: what was asked, and rules/deadlines.yaml where nothing was."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
import yaml

from jobs.contract.asked import Deadlines
from jobs.contract.terms import STRICT, EngineMode, Phase

FILE = Path(__file__).parents[1] / "rules" / "deadlines.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Growing:
    """With the host memory that the model needs."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    s: float
    per_gib: float


_Rules = dict[EngineMode, dict[Phase | Literal["quiet"], float | _Growing]]


def of_attempt(  # noqa: PLR0913  # each may be asked for
    mode: EngineMode,
    memory_gib: float,
    *,
    attempt_s: float | None = None,
    quiet_s: float | None = None,
    phases_s: Mapping[Phase, float] | None = None,
    measures: bool = False,
) -> Deadlines:
    """For a model of this size. Without *attempt_s* it may take what all its phases may."""
    rules = _rules()[mode]
    allowed = {phase: _seconds(rules[phase], memory_gib) for phase in Phase} | dict(phases_s or {})
    others = {Phase.PROVISION} if measures else {Phase.PROVISION, Phase.MEASURE}
    return Deadlines(
        attempt_s=attempt_s or sum(s for p, s in allowed.items() if p not in others),
        phases_s=allowed,
        quiet_s=quiet_s or _seconds(rules["quiet"], memory_gib),
    )


def _seconds(rule: float | _Growing, memory_gib: float) -> float:
    return rule.s + rule.per_gib * memory_gib if isinstance(rule, _Growing) else rule


@cache
def _rules() -> _Rules:
    return pydantic.TypeAdapter(_Rules).validate_python(yaml.safe_load(FILE.read_text()))
