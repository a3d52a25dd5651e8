"""What became of each request of a cell: asked, got, and whether that keeps the contract."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from jobs.contract.seen import MoeGroup, ProbeReport
from jobs.contract.terms import STRICT
from orchestrator.asked.cell_requests import asked
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import FieldName, RequestVerdict
from orchestrator.concluded import contracts
from orchestrator.concluded.contracts import Contract
from orchestrator.taxonomy import is_refusal

SEPARATOR = ", "


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    asked: str | None
    got: str | None
    verdict: RequestVerdict
    kept: bool
    """Whether vLLM kept the field's contract. An unseen request neither keeps nor breaks it."""


def became_of_requests(
    cell: Cell, report: ProbeReport | None, category: str | None, vllm_version: str
) -> dict[FieldName, Request]:
    """Every field that was asked for or seen, in the order of the fields."""
    wanted = asked(cell)
    seen = _seen(report) if report is not None and report.ready else {}
    refused = _refused(wanted, report, category)
    runner = report.engine.runner if report is not None else None
    method = (cell.model.speculative or {}).get("method")
    became: dict[FieldName, Request] = {}
    for field, value in wanted.items():
        if value is None and field not in seen:
            continue
        contract = contracts.load().of(
            field, vllm_version=vllm_version, runner=runner, method=method
        )
        became[field] = (
            Request(asked=value, got=None, verdict=RequestVerdict.REFUSED, kept=True)
            if field in refused
            else _became(wanted, seen, contract)
        )
    return became


def _became(
    wanted: Mapping[FieldName, str | None], seen: Mapping[FieldName, str], contract: Contract
) -> Request:
    value, got = wanted[contract.field], seen.get(contract.field)
    if not seen:
        return Request(asked=value, got=got, verdict=RequestVerdict.UNSEEN, kept=True)
    if value is not None:
        verdict = _explicit(value, got, contract)
        return Request(asked=value, got=got, verdict=verdict, kept=verdict in contract.explicit)
    verdict = _unset(got, seen, contract)
    # A draft inherits what was asked for the target: where that is nothing, it chooses as well.
    free = wanted.get(_of_target(contract.field)) is None
    return Request(asked=None, got=got, verdict=verdict, kept=verdict is contract.unset or free)


def _explicit(value: str, got: str | None, contract: Contract) -> RequestVerdict:
    same = [contracts.load().same(value, one) for one in (got or "").split(SEPARATOR)]
    honoured = any(same) if contract.partial else all(same)
    return RequestVerdict.HONOURED if honoured else RequestVerdict.DROPPED


def _unset(got: str | None, seen: Mapping[FieldName, str], contract: Contract) -> RequestVerdict:
    of_target = seen.get(_of_target(contract.field), "").split(SEPARATOR)
    inherits = contract.unset is RequestVerdict.INHERITED
    if inherits and set((got or "").split(SEPARATOR)) <= set(of_target):
        return RequestVerdict.INHERITED
    return RequestVerdict.AUTOSELECTED


def _of_target(field: FieldName) -> FieldName:
    return cast("FieldName", field.replace("draft.", "target."))


def _seen(report: ProbeReport) -> dict[FieldName, str]:
    """What every field resolved to; several values of one field are joined."""
    values: dict[FieldName, Iterable[str | None]] = {
        "target.attention_backend": [group.backend for group in report.target],
        "target.kv_cache_dtype": [group.kv_cache_dtype for group in report.target],
        "target.moe_backend": _moe_backends(report.target_moe),
        "draft.attention_backend": [group.backend for group in report.draft],
        "draft.kv_cache_dtype": [group.kv_cache_dtype for group in report.draft],
        "draft.moe_backend": _moe_backends(report.draft_moe),
        "runner": [report.engine.runner],
        "block_size": [str(group.block_size) for group in report.target if group.block_size],
    }
    joined = {
        field: SEPARATOR.join(dict.fromkeys(value for value in found if value))
        for field, found in values.items()
    }
    return {field: value for field, value in joined.items() if value}


def _moe_backends(groups: Iterable[MoeGroup]) -> list[str | None]:
    return [group.backend for group in groups]


_CONCERNS: Mapping[str, frozenset[FieldName]] = {
    "backend_unsupported": frozenset({"target.attention_backend", "draft.attention_backend"}),
    "kv_layout_conflict": frozenset({"target.attention_backend", "draft.attention_backend"}),
    "moe_backend_unsupported": frozenset({"target.moe_backend", "draft.moe_backend"}),
    "kv_cache_dtype_unsupported": frozenset({"target.kv_cache_dtype", "draft.kv_cache_dtype"}),
    "runner_unsupported": frozenset({"runner"}),
}


def _refused(
    wanted: Mapping[FieldName, str | None], report: ProbeReport | None, category: str | None
) -> frozenset[FieldName]:
    """Which explicit requests a refusal is about: those its text names, else those of its kind."""
    if report is None or report.failure is None or category is None or not is_refusal(category):
        return frozenset()
    explicit = {field: value for field, value in wanted.items() if value is not None}
    text = " ".join(seen.message for seen in report.failure.chain).lower()
    named = frozenset(field for field, value in explicit.items() if value.lower() in text)
    concerned = frozenset(explicit) & _CONCERNS.get(category, frozenset())
    return (named & concerned) or concerned or named
