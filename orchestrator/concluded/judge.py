"""The verdict on one cell: what was seen, held against what was asked and expected. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

from jobs.contract.attempts import Attempt
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.terms import STRICT
from orchestrator.asked.cell_requests import asked
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Expectation, FieldName, Outcome, RequestVerdict
from orchestrator.concluded import causes, suspects
from orchestrator.concluded.classify import classify
from orchestrator.concluded.kernels import Objection, objections
from orchestrator.concluded.ranks import disagreements
from orchestrator.concluded.requests import Request, became_of_requests
from orchestrator.taxonomy import (
    EMULATION_LIMIT,
    WORKERS_DISAGREE,
    is_refusal,
    says_nothing_of_vllm,
)


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    verdict: Verdict
    category: str | None = None
    """The kind of failure seen, also where it was expected."""

    outcome: Outcome | None = None
    """What the engine did; None if it was never started."""

    requests: dict[FieldName, Request] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    """Why it did not pass, each in one line."""


def not_run(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.NOT_RUN, reasons=(reason,))


def judge(cell: Cell, build: ProvisionedBuild, attempt: Attempt) -> Judgement:
    category = _category(cell, build, attempt)
    outcome = _outcome(category)
    requests = became_of_requests(cell, attempt.report, category, build.vllm_version)
    unreal = {} if category or not attempt.report else objections(attempt.report, asked(cell))
    requests |= {name: _unseen(requests[name]) for name in unreal if name in requests}
    split = disagreements(attempt.report.ranks) if attempt.report else ()
    reasons = [
        *_unmet(cell, attempt, outcome, category),
        *map(str, split),
        *(objection.reason for objection in unreal.values()),
        *_broken(cell.expectation, requests),
    ]
    if category is None and reasons:
        category = WORKERS_DISAGREE if split else _kind(requests, unreal)
    return Judgement(
        verdict=Verdict.FAILED if reasons else Verdict.PASSED,
        category=category,
        outcome=outcome,
        requests=requests,
        reasons=tuple(reasons),
    )


def _category(cell: Cell, build: ProvisionedBuild, attempt: Attempt) -> str | None:
    category = classify(attempt, cell.engine_mode, cell.check)
    return suspects.fault(build, attempt, category) or category


def _outcome(category: str | None) -> Outcome:
    if category is None:
        return "runs"
    return "refused" if is_refusal(category) else "fails"


def _unseen(request: Request) -> Request:
    """What a real card would have made of it; but what vLLM has dropped, it drops there too."""
    if request.verdict is RequestVerdict.DROPPED:
        return request
    return replace(request, verdict=RequestVerdict.UNSEEN, kept=True)


def _kind(requests: Mapping[FieldName, Request], unreal: Mapping[FieldName, Objection]) -> str:
    """Of a failure although the engine ran."""
    if any(request.verdict is RequestVerdict.DROPPED for request in requests.values()):
        return "silent_fallback"
    if any(request.asked is None and not request.kept for request in requests.values()):
        return "inheritance_broken"
    return next((objection.category for objection in unreal.values()), "expectation_unmet")


def _unmet(cell: Cell, attempt: Attempt, outcome: Outcome, category: str | None) -> Iterator[str]:
    expected = cell.expectation
    if category == EMULATION_LIMIT:
        # Whatever was expected, this is neither that nor its opposite.
        yield f"the emulation can't do it: {causes.one_line(cell, attempt, category)}"
        return
    if outcome not in expected.outcome:
        happened = _what_happened(cell, attempt, category)
        yield f"expected that it {_either(expected.outcome)}, but {happened}"
        return
    if category is None:
        return
    if expected.category is None and says_nothing_of_vllm(category):
        # Any failure may be expected, but this one is not the engine's.
        yield f"{_what_happened(cell, attempt, category)}: that is not a failure of vLLM"
        return
    if expected.category not in {None, category}:
        yield f"expected the failure {expected.category}, but it is {category}"
    if expected.phase not in {None, attempt.phase}:
        yield f"expected the failure in {expected.phase}, but it came in {attempt.phase}"


def _broken(expected: Expectation, requests: Mapping[FieldName, Request]) -> Iterator[str]:
    for name, request in requests.items():
        fine = expected.requests.get(name)
        if request.verdict not in fine if fine is not None else not request.kept:
            wish = f"asked {request.asked}" if request.asked else "asked nothing"
            yield f"{name} was {request.verdict}: {wish}, got {request.got or 'nothing'}"
    for name, wanted in expected.got.items():
        got = requests[name].got if name in requests else None
        if got != wanted:
            yield f"{name} should be {wanted}, but it is {got or 'nothing'}"


def _either(outcomes: Iterable[Outcome]) -> str:
    words = {"runs": "runs", "refused": "is refused", "fails": "fails"}
    return " or ".join(words[outcome] for outcome in outcomes)


def _what_happened(cell: Cell, attempt: Attempt, category: str | None) -> str:
    if category is None:
        return "it ran"
    return f"{category} in {attempt.phase}: {causes.one_line(cell, attempt, category)}"
