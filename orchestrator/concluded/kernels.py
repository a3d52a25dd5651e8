"""Would the real card have kernels for what an emulated engine got? Data: rules/vendors.yaml."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pydantic
import yaml

from jobs.contract.emulation import Emulated
from jobs.contract.seen import AttentionGroup, MoeGroup, ProbeReport
from jobs.contract.terms import STRICT
from orchestrator.asked.config import FieldName, Vendor
from orchestrator.taxonomy import EMULATION_LIMIT, FOREIGN_BACKEND

FILE = Path(__file__).parents[1] / "rules" / "vendors.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    backend: re.Pattern[str] = re.compile(".*")
    class_path: re.Pattern[str] = re.compile("")
    vendors: tuple[Vendor, ...]
    source: str

    def fits(self, got: "Got") -> bool:
        return (
            self.backend.fullmatch(got.backend) is not None
            and self.class_path.search(got.classes) is not None
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumption:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    class_path: re.Pattern[str]
    module: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    attention: tuple[Rule, ...]
    moe: tuple[Rule, ...]
    assumed: tuple[Assumption, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Got:
    """What some layers got: the backend's name, and the paths of the classes behind it."""

    backend: str
    classes: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Objection:
    """Why a result of an emulated engine says nothing about the real card."""

    category: str
    reason: str


@cache
def rules() -> Rules:
    return pydantic.TypeAdapter(Rules).validate_python(yaml.safe_load(FILE.read_text()))


def objections(
    report: ProbeReport, asked: Mapping[FieldName, str | None]
) -> dict[FieldName, Objection]:
    """By the request that they are about; none for a real engine, which has shown what it can."""
    if report.emulated is None or not report.ready:
        return {}
    found = {
        field: next(_against(field, got, report.emulated, asked), None)
        for field, got in _got(report).items()
    }
    return {field: objection for field, objection in found.items() if objection is not None}


def _got(report: ProbeReport) -> dict[FieldName, list[Got]]:
    return {
        "target.attention_backend": [*map(_of_attention, report.target)],
        "draft.attention_backend": [*map(_of_attention, report.draft)],
        "target.moe_backend": [*map(_of_moe, report.target_moe)],
        "draft.moe_backend": [*map(_of_moe, report.draft_moe)],
    }


def _of_attention(group: AttentionGroup) -> Got:
    classes = (group.class_path, group.impl, group.mla_prefill_backend)
    return Got(backend=group.backend, classes=" ".join(filter(None, classes)))


def _of_moe(group: MoeGroup) -> Got:
    return Got(backend=group.backend or "NONE", classes=group.experts_class or "")


def _against(
    field: FieldName,
    got: Iterable[Got],
    emulated: Emulated,
    asked: Mapping[FieldName, str | None],
) -> Iterator[Objection]:
    card = emulated.card
    for each in got:
        vendors = _vendors(field, each)
        if vendors is None and asked.get(field):
            reason = f"{FILE.name} does not say whose cards have kernels for {each.backend}"
            yield Objection(category=EMULATION_LIMIT, reason=f"{field}: {reason}")
        elif vendors is not None and card.vendor not in vendors:
            reason = f"{each.backend} has no kernels for cards of {card.vendor} such as {card.name}"
            yield Objection(category=FOREIGN_BACKEND, reason=f"{field}: {reason}")
        for assumption in rules().assumed:
            if assumption.module in emulated.packages.assumed and assumption.class_path.search(
                each.classes
            ):
                reason = f"{each.backend} rests on {assumption.module}, which is only pretended"
                yield Objection(category=EMULATION_LIMIT, reason=f"{field}: {reason}")


def _vendors(field: FieldName, got: Got) -> tuple[Vendor, ...] | None:
    of_kind = rules().moe if field.endswith("moe_backend") else rules().attention
    return next((rule.vendors for rule in of_kind if rule.fits(got)), None)
