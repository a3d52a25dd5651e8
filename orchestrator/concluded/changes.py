"""What changed from one vLLM release to the next, card by card. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from packaging.version import InvalidVersion, Version

from jobs.contract.seen import AttentionGroup, MoeGroup, ProbeReport
from orchestrator.asked.cells import Cell
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.matrix import Matrix

Facts = dict[str, str]
"""What a cell came to: outcome, backends, KV layout and so on, where they were seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    fact: str
    before: str | None
    """None: not there, or not seen."""

    after: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One question that two releases in a row answer differently."""

    card: str
    """`h100-emulated` where it is emulated."""

    model: str
    backend: str
    before: str
    """The earlier build."""

    after: str
    differences: tuple[Difference, ...]


def between_releases(matrix: Matrix) -> tuple[Change, ...]:
    """Every change, in the order of the releases; none where there is nothing to compare."""
    return tuple(
        change
        for before, after in pairwise(_releases(matrix))
        for change in _step(matrix, before, after)
    )


def _releases(matrix: Matrix) -> list[str]:
    """Builds without patches of our own or anybody's, the oldest vLLM first."""
    versions: dict[str, Version] = {}
    for cell in matrix.cells:
        record = matrix.record(cell)
        pure = not cell.build.patches and cell.build.checkout is None
        if pure and record is not None and record.build is not None:
            version = _version(record.build.vllm_version)
            if version is not None and version not in versions.values():
                versions.setdefault(cell.build.name, version)
    return sorted(versions, key=versions.__getitem__)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _step(matrix: Matrix, before: str, after: str) -> Iterator[Change]:
    earlier = {_question(cell): cell for cell in matrix.cells if cell.build.name == before}
    for cell in matrix.cells:
        if cell.build.name != after or _question(cell) not in earlier:
            continue
        was, now = _facts(matrix, earlier[_question(cell)]), _facts(matrix, cell)
        if was is not None and now is not None and (found := tuple(_differences(was, now))):
            card, model, backend, _ = cell.id.split("/")
            yield Change(
                card=card,
                model=model,
                backend=backend,
                before=before,
                after=after,
                differences=found,
            )


def _question(cell: Cell) -> str:
    return cell.id.rsplit("/", 1)[0]


def _differences(was: Facts, now: Facts) -> Iterator[Difference]:
    """An engine that no longer starts has lost all its backends: only the failure is told."""
    names = dict.fromkeys([*was, *now])
    if was["outcome"] != now["outcome"]:
        names = dict.fromkeys(["outcome"])
    for name in names:
        if was.get(name) != now.get(name):
            yield Difference(fact=name, before=was.get(name), after=now.get(name))


def _facts(matrix: Matrix, cell: Cell) -> Facts | None:
    """None where the cell was not run: that says nothing about a release."""
    record = matrix.record(cell)
    if record is None or record.attempt is None or record.verdict is Verdict.NOT_RUN:
        return None
    judgement, report = record.judgement, record.attempt.report
    if judgement.outcome != "runs":
        return {"outcome": f"{judgement.outcome} ({judgement.category})"}
    facts = {"outcome": "runs"} | (_seen(report) if report is not None else {})
    for field, request in judgement.requests.items():
        if request.asked is not None:
            facts[f"{field} {request.asked}"] = str(request.verdict)
    return facts


def _seen(report: ProbeReport) -> Facts:
    engine = report.engine
    facts = {
        "runner": engine.runner,
        "KV layout": engine.kv_layout,
        "target attention": _attention(report.target),
        "draft attention": _attention(report.draft),
        "target MLA prefill": _prefill(report.target),
        "draft MLA prefill": _prefill(report.draft),
        "target MoE": _moe(report.target_moe),
        "draft MoE": _moe(report.draft_moe),
    }
    return {name: value for name, value in facts.items() if value}


def _attention(groups: Iterable[AttentionGroup]) -> str:
    """Several classes may share a name; a class that only moved to another module is the same."""
    return _joined(f"{group.backend} ({group.class_path.rsplit('.', 1)[-1]})" for group in groups)


def _prefill(groups: Iterable[AttentionGroup]) -> str:
    return _joined((group.mla_prefill_backend or "").rsplit(".", 1)[-1] for group in groups)


def _moe(groups: Iterable[MoeGroup]) -> str:
    return _joined(group.backend or group.quant_method for group in groups)


def _joined(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))
