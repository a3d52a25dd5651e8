"""One cell on the page: what the matrix shows of it, and what a click on it tells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jobs.contract.seen import AttentionGroup, MoeGroup
from orchestrator.asked.cells import Cell
from orchestrator.concluded.judge import Verdict
from orchestrator.reports import explain, wording
from orchestrator.reports.document import Document, Effect
from orchestrator.reports.rows import CellRow, FailureRow


class Sign(StrEnum):
    """What a cell looks like: a shape and a colour each."""

    PASSED = "passed"
    AS_EXPECTED = "as-expected"
    """It was refused or failed, as the suite expects."""

    FAILED = "failed"
    EXCUSED = "excused"
    """Waived, or there to fail."""

    NOT_RUN = "not-run"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What the matrix shows of a cell, and what it can be found by."""

    id: str
    vendor: str
    arch: str | None
    card: str
    model: str
    backend: str
    build: str
    sign: Sign
    verdict: str
    """As all reports word it: `failed (waived)`."""

    category: str | None
    gate: Effect | None
    """What the gate made of it, if it weighed it."""

    mode: str
    prediction: str | None
    """Whether a real card did the same; None where none was asked."""

    target: str
    draft: str
    others: str
    layout: str | None
    runner: str | None
    seconds: float | None
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    owner: str
    backend: str
    of: str
    """The class that serves it."""

    layers: int
    facts: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Detail:
    """What is known beside it."""

    notes: tuple[str, ...]
    gate: tuple[str, ...]
    attempts: int
    requests: tuple[tuple[str, str | None, str | None, str], ...]
    """Field, asked, got, what became of it; those that asked for something first."""

    groups: tuple[Group, ...]
    phases: dict[str, float]
    failure: FailureRow | None
    log: str | None
    log_lines: tuple[str, ...]
    blocks: dict[str, tuple[str, ...]]
    """Lines that `explain` has for it, by title."""


DRAWN = frozenset(
    (
        *("asked", "why", "requests", "phases", "failure"),
        *("target attention", "draft attention", "target MoE", "draft MoE"),
    )
)
"""Blocks of `explain` that the page draws instead."""


def shown(report: Document, cell: Cell, row: CellRow, weighed: Mapping[Effect, str]) -> Shown:
    return Shown(
        id=row.id,
        vendor=cell.hardware.vendor,
        arch=cell.hardware.arch,
        card=row.card,
        model=row.model,
        backend=row.backend,
        build=row.build.name,
        sign=_sign(row),
        verdict=wording.verdict(row),
        category=row.category,
        gate=next(iter(weighed), None),
        mode=row.engine_mode,
        prediction=_prediction(report, row),
        target=wording.got(row, "target"),
        draft=wording.got(row, "draft"),
        others=wording.other_requests(row),
        layout=row.kv_layout,
        runner=row.runner,
        seconds=row.seconds,
        why=wording.why(row),
    )


def detail(
    report: Document, row: CellRow, weighed: Mapping[Effect, str], log_lines: Sequence[str]
) -> Detail:
    requests = [
        (name, request.asked, request.got, str(request.verdict))
        for name, request in row.requests.items()
    ]
    blocks = {title: tuple(lines) for title, lines in explain.blocks(report, row)}
    return Detail(
        notes=tuple(explain.standing(report, row)),
        gate=tuple(weighed.values()),
        attempts=row.attempts,
        requests=tuple(sorted(requests, key=lambda request: request[1] is None)),
        groups=tuple(_groups(row)),
        phases=row.phases,
        failure=row.failure,
        log=row.log,
        log_lines=tuple(log_lines),
        blocks={title: lines for title, lines in blocks.items() if lines and title not in DRAWN},
    )


def importance(row: CellRow) -> int:
    """Lower for what people look at first."""
    return [Sign.FAILED, Sign.NOT_RUN, Sign.EXCUSED, Sign.AS_EXPECTED, Sign.PASSED].index(
        _sign(row)
    )


def _sign(row: CellRow) -> Sign:
    match row.verdict:
        case Verdict.NOT_RUN:
            return Sign.NOT_RUN
        case Verdict.PASSED:
            return Sign.PASSED if row.outcome == "runs" else Sign.AS_EXPECTED
        case Verdict.FAILED:
            return Sign.EXCUSED if row.waived or wording.is_witness(row) else Sign.FAILED


def _prediction(report: Document, row: CellRow) -> str | None:
    if any(each.cell_id == row.id for each in report.disagreements):
        return "differs from a real card"
    return "confirmed by a real card" if row.id in report.confirmed else None


def _groups(row: CellRow) -> Iterator[Group]:
    for owner, attention, experts in (
        ("target", row.target, row.target_moe),
        ("draft", row.draft, row.draft_moe),
    ):
        yield from (_attention(owner, group) for group in attention)
        yield from (_moe(owner, group) for group in experts)


def _attention(owner: str, group: AttentionGroup) -> Group:
    where = "none" if group.kv_group is None else str(group.kv_group)
    return Group(
        owner=owner,
        backend=group.backend,
        of=group.class_path,
        layers=group.layers,
        facts={"KV group": where} | explain.attention_facts(group),
    )


def _moe(owner: str, group: MoeGroup) -> Group:
    return Group(
        owner=f"{owner} MoE",
        backend=group.backend or group.quant_method,
        of=group.experts_class or group.quant_method,
        layers=group.layers,
        facts={},
    )
