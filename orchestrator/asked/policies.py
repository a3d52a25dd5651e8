"""What a release may be shipped with: the policy of a gate, and the exceptions from it."""

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import pydantic

from jobs.contract.terms import STRICT
from orchestrator.asked.values import Name, Number, Text

Share = Annotated[float, Number, pydantic.Field(ge=0, le=1)]
Natural = Annotated[int, Number, pydantic.Field(ge=0)]


class ChangeKind(StrEnum):
    """What became of a cell, or of one of its requests, since a baseline."""

    REGRESSED = "regressed"
    FIXED = "fixed"
    UNCHANGED = "unchanged"
    """It passes as before, with the same backends, layout and runner."""

    DRIFT = "drift"
    """It passes as before, but otherwise: nobody said whether that is good or bad."""

    BROKEN_BEFORE = "broken before"
    """It fails, and did so before."""

    FLAKY = "flaky"
    """It did not answer the same each time it was tried, although nothing had changed."""

    INFRASTRUCTURE = "infrastructure"
    """It says nothing about vLLM: it was not run, or failed for no reason of vLLM's."""

    NO_BASELINE = "no baseline"
    """The baseline has no answer to what it asks."""

    MISPREDICTED = "predicted ≠ observed"
    """An emulated engine did something else than the real card."""

    NO_VERDICT = "no verdict"
    """Its speed may have changed: noise is larger than the effect."""


class ConcernKind(StrEnum):
    """What may keep a release from being shipped, the gravest first."""

    REGRESSED = ChangeKind.REGRESSED
    """A cell, or one of its requests, is broken that was not; or it is slower."""

    FAILED = "failed"
    """A cell fails, and nothing says that it did so before."""

    MISPREDICTED = ChangeKind.MISPREDICTED
    CLAIM = "claim"
    """What the suite claims is not proven."""

    BROKEN_BY_FIX = "broken by the fix"
    """A cell passes without the fix of the claim and fails with it."""

    NOT_RUN = "not run"
    INFRASTRUCTURE = ChangeKind.INFRASTRUCTURE
    """A cell failed, for no reason of vLLM's."""

    BROKEN_BEFORE = ChangeKind.BROKEN_BEFORE
    NO_VERDICT = ChangeKind.NO_VERDICT
    FLAKY = ChangeKind.FLAKY
    """A cell passes, but not each time that it is tried."""

    GONE = "gone"
    """A cell of the baseline that nobody asks any more."""

    DRIFT = ChangeKind.DRIFT
    NO_BASELINE = ChangeKind.NO_BASELINE
    """A cell passes, and the baseline has nothing to compare it with."""

    BASELINE = "baseline"
    """The baseline as a whole is of no use."""

    COVERAGE = "coverage"
    """Too little was seen."""

    WAIVER = "waiver"
    """A waiver whose cells pass."""


OfACell = Literal[
    "regressed",
    "failed",
    "predicted ≠ observed",
    "infrastructure",
    "broken before",
    "no verdict",
    "flaky",
    "gone",
    "drift",
    "no baseline",
]
"""Concerns that can be tolerated and waived. What was not run has shown nothing to excuse."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """A known exception: what it expects of its cells does not block."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cells: Text
    """Glob of cell ids."""

    category: str | None = None
    """The failure that is excused; any other failure of these cells still blocks."""

    verdict: OfACell | None = None
    """What is excused, such as `drift`; `failed` is any failure, also one that regressed."""

    reason: Text
    """For people."""

    owner: Text
    """Who is asked about it."""

    link: str | None = None
    """To an issue, for people."""

    expires: date | None = None
    """Its last day, such as 2027-06-30; None where a release can't change any more."""

    @property
    def kind(self) -> ConcernKind | None:
        return ConcernKind(self.verdict) if self.verdict else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    min_coverage: Share | None = None
    """The part of the cells that has to say something about vLLM, or be waived."""

    max_not_run: Natural | None = None
    """So many cells may be missing; None sets no limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """By what is decided whether a release may ship."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: Name = "own"
    """Of the policy; the file's, if it is one of conf/gate."""

    tolerates: tuple[OfACell, ...] = ()
    """What is reported and does not block."""

    min_coverage: Share = 0.0
    """As in `Limits`, of all cells."""

    max_not_run: Natural | None = 0
    """None: as many as *min_coverage* bears."""

    per_card: dict[Text, Limits] = field(default_factory=dict)
    """Further limits, for each card that a glob matches: `mi300x`, `*-emulated`, `*`."""

    baseline: Text | None = None
    """A run to compare with, or a build of it (RUN:BUILD); `previous` or `shipped` of its suite."""

    waivers: tuple[Waiver, ...] = ()
    """Known exceptions."""

    waiver_files: tuple[Text, ...] = ()
    """Files with further waivers, relative to conf/ or to where the command runs."""
