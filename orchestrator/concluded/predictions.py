"""Were predictions right? What emulated engines got, held against what real cards did. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jobs.contract.builds import ProvisionedBuild
from jobs.contract.seen import MoeGroup, ProbeReport
from jobs.contract.terms import STRICT, EngineMode
from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.concluded.record import Record
from orchestrator.taxonomy import says_nothing_of_vllm

NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What a real card did with one question."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    hardware: str
    model: str
    backend: str
    vllm_version: str
    changed_files: dict[str, str]
    """Files that patches or a checkout changed, to their SHA-256."""

    facts: dict[str, str]
    source: str
    """Where the record lies."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disagreement:
    """An emulated engine and the real card differ. One of them is what a user will see."""

    cell_id: str
    field: str
    predicted: str
    observed: str
    source: str

    def __str__(self) -> str:
        return (
            f"{self.field}: predicted {self.predicted}, but a real card had {self.observed}"
            f" ({self.source})"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """How predictions fared."""

    disagreements: tuple[Disagreement, ...] = ()
    confirmed: tuple[str, ...] = ()
    """Ids of the emulated cells of which a real card did the very same."""


def observation(record: Record, source: str) -> Observation | None:
    """None where the record is not of a real engine, or says nothing about vLLM."""
    attempt, build = record.attempt, record.build
    if build is None or attempt is None or attempt.report is None:
        return None
    facts = _facts(record)
    if facts is None or not _is_real(attempt.report, build):
        return None
    hardware, model, backend, _ = cell_ids.parts(record.cell_id)
    return Observation(
        hardware=hardware,
        model=model,
        backend=backend,
        vllm_version=_public(build),
        changed_files=build.sources,
        facts=facts,
        source=source,
    )


def _is_real(report: ProbeReport, build: ProvisionedBuild) -> bool:
    modes = {report.engine_mode, build.engine_mode}
    return modes == {EngineMode.REAL} and report.emulated is None


def accuracy(
    cells: Iterable[Cell], records: Mapping[str, Record], observations: Iterable[Observation]
) -> Accuracy:
    """Later observations of a question replace earlier ones."""
    known = {_question(each): each for each in observations}
    disagreements: list[Disagreement] = []
    confirmed: list[str] = []
    for cell, predicted, observed in _pairs(cells, records, known):
        differing = [*_differing(cell, predicted, observed)]
        disagreements += differing
        if not differing:
            confirmed.append(cell.id)
    return Accuracy(disagreements=tuple(disagreements), confirmed=tuple(confirmed))


Question = tuple[str, ...]


def _pairs(
    cells: Iterable[Cell], records: Mapping[str, Record], known: Mapping[Question, Observation]
) -> Iterator[tuple[Cell, dict[str, str], Observation]]:
    for cell in cells:
        record = records.get(cell.id)
        if cell.engine_mode is EngineMode.REAL or record is None or record.build is None:
            continue
        axes = (cell.axis("hardware"), cell.axis("model"), cell.axis("backend"))
        observed = known.get((*axes, *_code(_public(record.build), record.build.sources)))
        predicted = _facts(record)
        if observed is not None and predicted is not None:
            yield cell, predicted, observed


def _question(seen: Observation) -> Question:
    code = _code(seen.vllm_version, seen.changed_files)
    return (seen.hardware, seen.model, seen.backend, *code)


def _code(vllm_version: str, changed_files: Mapping[str, str]) -> Question:
    """Which vLLM, whatever it was built for."""
    return (vllm_version, *(f"{file} {sha}" for file, sha in sorted(changed_files.items())))


def _public(build: ProvisionedBuild) -> str:
    """Without what says for which accelerator it was built: 0.32.0+cu130."""
    return build.vllm_version.partition("+")[0]


def _differing(
    cell: Cell, predicted: Mapping[str, str], observed: Observation
) -> Iterator[Disagreement]:
    both_ran = predicted["outcome"] == observed.facts["outcome"]
    for field in dict.fromkeys([*predicted, *observed.facts]) if both_ran else ["outcome"]:
        one, other = predicted.get(field, NOTHING), observed.facts.get(field, NOTHING)
        if one != other:
            yield Disagreement(
                cell_id=cell.id, field=field, predicted=one, observed=other, source=observed.source
            )


def _facts(record: Record) -> dict[str, str] | None:
    """What can be predicted: whether the engine gets ready, and with what."""
    category = record.judgement.category
    if record.attempt is None or (report := record.attempt.report) is None:
        return None
    if says_nothing_of_vllm(category):
        return None
    if report.ready:
        return {"outcome": "runs", **_resolved(report)}
    return {"outcome": f"{record.judgement.outcome} ({category})"}


def _resolved(report: ProbeReport) -> dict[str, str]:
    found: dict[str, set[str | None]] = {
        "target.attention": {group.class_path for group in report.target},
        "draft.attention": {group.class_path for group in report.draft},
        "target.moe_backend": _moe(report.target_moe),
        "draft.moe_backend": _moe(report.draft_moe),
        "kv_layout": {report.engine.kv_layout},
        "runner": {report.engine.runner},
    }
    texts = {field: ", ".join(sorted(filter(None, values))) for field, values in found.items()}
    return {field: text for field, text in texts.items() if text}


def _moe(groups: Iterable[MoeGroup]) -> set[str | None]:
    return {group.backend for group in groups}
