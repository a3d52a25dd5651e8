"""What a cell came to, by name: outcome, backends, KV layout. Two of them can be held together."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jobs.contract.seen import AttentionGroup, MoeGroup, ProbeReport
from orchestrator.asked.config import FieldName
from orchestrator.concluded.judge import Judgement, Verdict
from orchestrator.concluded.record import Record

OUTCOME = "outcome"

Facts = dict[str, str]
"""What was not there, or not seen, has no entry."""

_ONLY_AS_REQUEST: tuple[FieldName, ...] = (
    "target.kv_cache_dtype",
    "draft.kv_cache_dtype",
    "block_size",
)
"""What vLLM chose of these is told nowhere else."""

_OF_EVERY_ENGINE = ("runner", "KV layout")
"""Where these were not seen, they were there nevertheless: older releases don't tell them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    fact: str
    before: str | None
    """None: not there, or not seen."""

    after: str | None

    def __str__(self) -> str:
        return f"{self.fact}: {self.before or '-'} → {self.after or '-'}"


def facts(record: Record | None) -> Facts | None:
    """None where the cell was not run: that says nothing about a build."""
    if record is None or record.attempt is None or record.verdict is Verdict.NOT_RUN:
        return None
    judgement, report = record.judgement, record.attempt.report
    if judgement.outcome != "runs":
        return {OUTCOME: f"{judgement.outcome} ({judgement.category})"}
    seen = {} if report is None else _seen(report)
    return {OUTCOME: "runs"} | seen | dict(_requests(judgement))


def differences(was: Facts, now: Facts) -> Iterator[Difference]:
    """An engine that no longer starts has lost all its backends: only the failure is told."""
    names = dict.fromkeys([*was, *now])
    if was[OUTCOME] != now[OUTCOME]:
        names = dict.fromkeys([OUTCOME])
    for name in names:
        before, after = was.get(name), now.get(name)
        unseen = None in {before, after} and name in _OF_EVERY_ENGINE
        if before != after and not unseen:
            yield Difference(fact=name, before=before, after=after)


def _requests(judgement: Judgement) -> Iterator[tuple[str, str]]:
    for field, request in judgement.requests.items():
        if request.asked is not None:
            yield f"{field} {request.asked}", str(request.verdict)
        elif field in _ONLY_AS_REQUEST and request.got is not None:
            yield field, request.got


def _seen(report: ProbeReport) -> Facts:
    engine = report.engine
    found = {
        "runner": engine.runner,
        "KV layout": engine.kv_layout,
        "target attention": _attention(report.target),
        "draft attention": _attention(report.draft),
        "target MLA prefill": _prefill(report.target),
        "draft MLA prefill": _prefill(report.draft),
        "target MoE": _moe(report.target_moe),
        "draft MoE": _moe(report.draft_moe),
    }
    return {name: value for name, value in found.items() if value}


def _attention(groups: Iterable[AttentionGroup]) -> str:
    """Several classes may share a name; a class that only moved to another module is the same."""
    return _joined(f"{group.backend} ({group.class_path.rsplit('.', 1)[-1]})" for group in groups)


def _prefill(groups: Iterable[AttentionGroup]) -> str:
    return _joined((group.mla_prefill_backend or "").rsplit(".", 1)[-1] for group in groups)


def _moe(groups: Iterable[MoeGroup]) -> str:
    return _joined(group.backend or group.quant_method for group in groups)


def _joined(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))
