"""
What was published of the JSON report holds: its documents are still understood, and its
schema takes the documents of today.

`python -m tests.unit.test_report_versions` keeps a sample of a new version, with its schema.
"""

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

from jobs.contract.seen import AttentionGroup, MoeGroup, RankSeen, Rejection
from jobs.contract.terms import Phase
from orchestrator.concluded.changes import Change
from orchestrator.concluded.facts import Difference
from orchestrator.concluded.predictions import Disagreement
from orchestrator.concluded.proof import Regression
from orchestrator.reports import document
from orchestrator.reports.document import Document
from tests.unit.test_reports_of_proofs import a_document

DATA = Path(__file__).parent / "data"
VERSIONS = [int(file.name.split(".")[0][7:]) for file in DATA.glob("report-*.schema.json")]
SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"

GROUP = AttentionGroup(
    kv_group=0,
    backend="FLASH_ATTN",
    class_path="vllm.v1.attention.backends.flash_attn.FlashAttentionBackend",
    impl="FlashAttentionImpl",
    layers=1,
    layer_names=("model.layers.0.self_attn.attn",),
    attention_kind="MLAAttentionSpec",
    head_size=128,
    kv_heads=8,
    block_size=16,
    kernel_block_size=16,
    kv_cache_dtype="auto",
    kv_torch_dtype="bfloat16",
    sliding_window=4096,
    layouts=("LBNHC",),
    mla_prefill_backend="FlashAttnPrefillBackend",
)
MOE = MoeGroup(
    backend="TRITON",
    experts_class="x.TritonExperts",
    quant_method="x.UnquantizedFusedMoEMethod",
    layers=1,
    local_experts=4,
)


def sample(version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"report-{version}.json").read_text())
    return found


def schema(version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"report-{version}.schema.json").read_text())
    return found


def a_full_document() -> Document:
    """With something in every field."""
    report = a_document()
    assert report.proof is not None
    first, *others = report.cells
    assert first.placement is not None
    rank = RankSeen(
        rank=1,
        tensor=1,
        pipeline=1,
        data=1,
        expert=1,
        target=(GROUP,),
        draft=(GROUP,),
        target_moe=(MOE,),
        draft_moe=(MOE,),
        kv_layout="LBNHC",
        runner="V2",
    )
    rejection = Rejection(backend="FLASHMLA", reasons=("MLA only",), said_by="validation")
    regression = Regression(cell_id="a/b/c/new", passes_with="old", category="timeout", reason="x")
    difference = Difference(fact="draft attention", before="ROCM_ATTN", after="TRITON_ATTN")
    full = replace(
        first,
        target=(GROUP,),
        draft=(GROUP,),
        target_moe=(MOE,),
        draft_moe=(MOE,),
        ranks=(rank,),
        phases={Phase.LOAD: 1.5},
        kept_from="2026-12-01-seed",
        versions={"vllm": "0.32.0"},
        rejections=(rejection,),
        selections=(replace(first.selections[0], asked="TRITON_ATTN"),),
        placement=replace(
            first.placement,
            labels={"vm.card": "mi300x"},
            devices=("0",),
            device={"name": "AMD Instinct MI300X"},
        ),
        build=replace(
            first.build,
            checkout="/src/vllm",
            patches={"a.diff": "1234", "b.diff": None},
            sources={"vllm/x.py": "5678"},
        ),
    )
    return replace(
        report,
        gate=replace(report.gate, blockers=("a/b/c/new",), waived=("a/b/d/new",)),
        proof=replace(report.proof, reasons=("a reason",), regressions=(regression,)),
        cells=(full, *others),
        changes=(
            Change(
                card="mi300x-emulated",
                model="llama",
                backend="auto",
                before="old",
                after="new",
                differences=(difference,),
            ),
        ),
        disagreements=(
            Disagreement(cell_id="a/b/c/d", field="f", predicted="x", observed="y", source="s"),
        ),
        confirmed=(full.id,),
        emulations={
            name: replace(
                emulated,
                packages=replace(emulated.packages, source="the image's Dockerfile"),
                notes=("a note",),
            )
            for name, emulated in report.emulations.items()
        },
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_document_of_a_published_version_is_still_understood(version: int) -> None:
    published = sample(version)

    jsonschema.validate(published, json.loads(SCHEMA.read_text()))
    pydantic.TypeAdapter(Document).validate_python(published)


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_that_a_published_version_has_is_lost_or_renamed(version: int) -> None:
    published = sample(version)
    today = pydantic.TypeAdapter(Document)

    read = today.dump_python(today.validate_python(published), mode="json")

    assert _lost(published, read) == []


def test_a_reader_of_the_published_version_takes_a_document_of_today() -> None:
    today = json.loads(document.to_json(a_full_document()))

    assert today["schema_version"] in VERSIONS, "a new version needs its sample, see above"
    jsonschema.validate(today, schema(today["schema_version"]))


def test_a_schema_takes_fields_that_come_later() -> None:
    today = json.loads(document.to_json(a_full_document()))
    for place in (today, today["cells"][0], today["cells"][0]["target"][0]):
        place["a field of next year"] = 1

    jsonschema.validate(today, document.schema())


def _lost(before: Any, after: Any, path: str = "") -> list[str]:
    match before, after:
        case dict(), dict():
            return [
                lost
                for key, value in before.items()
                for lost in (
                    _lost(value, after[key], f"{path}/{key}") if key in after else [f"{path}/{key}"]
                )
            ]
        case list(), list():
            pairs = zip(before, after, strict=True)
            return [
                lost for n, pair in enumerate(pairs) for lost in _lost(*pair, path=f"{path}/{n}")
            ]
        case _:
            return [] if before == after else [path]


def _never_filled(values: list[Any], path: str = "") -> list[str]:
    """Fields that have something in none of *values*."""
    if not (filled := [value for value in values if value not in (None, (), {}, "")]):
        return [path]
    match filled[0]:
        case tuple():
            return _never_filled([part for value in filled for part in value], path)
        case dict():
            return _never_filled([part for value in filled for part in value.values()], path)
        case value if is_dataclass(value):
            return [
                empty
                for each in fields(value)
                for empty in _never_filled(
                    [getattr(one, each.name) for one in filled], f"{path}/{each.name}"
                )
            ]
        case _:
            return []


if __name__ == "__main__":
    report = a_full_document()
    if unseen := _never_filled([report]):
        raise SystemExit(f"the sample has nothing in {', '.join(unseen)}")
    if report.schema_version in VERSIONS:
        raise SystemExit(f"version {report.schema_version} has its sample, which stays as it is")
    name = f"report-{report.schema_version}"
    (DATA / f"{name}.json").write_text(document.to_json(report))
    (DATA / f"{name}.schema.json").write_text(json.dumps(document.schema(), indent=1) + "\n")
