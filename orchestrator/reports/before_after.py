"""The table of a proof: the same questions to each of its builds, side by side."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.asked import cell_ids
from orchestrator.asked.config import FieldName
from orchestrator.concluded.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import ProofRow
from orchestrator.reports.rows import CellRow

DRAFT = "draft."
TARGET = "target."
ATTENTION = "attention_backend"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    verdict: Verdict
    text: str
    """`TRITON_ATTN honoured, LBNHC`, or the category of the failure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One question to one card, with every build's answer."""

    subject: str
    """The card, and the model where there are several."""

    target_asked: str
    draft_asked: str
    claimed: bool
    answers: dict[str, Answer]
    """By build."""


def lines(proof: ProofRow, cells: Iterable[CellRow]) -> list[Line]:
    """The questions of the claim, and those others that some build did not pass."""
    claimed = set(proof.cells)
    questions: dict[str, list[CellRow]] = {}
    for row in cells:
        if row.build.name in proof.arms:
            questions.setdefault(cell_ids.question(row.id), []).append(row)
    told = [
        rows
        for rows in questions.values()
        if any(row.id in claimed or row.verdict is not Verdict.PASSED for row in rows)
    ]
    fields = _fields([row for rows in told for row in rows if row.id in claimed])
    one_model = len({rows[0].model for rows in told}) == 1
    return [
        Line(
            subject=rows[0].card if one_model else f"{rows[0].card} / {rows[0].model}",
            target_asked=_asked(rows[0], TARGET) or "auto",
            draft_asked=_asked(rows[0], DRAFT) or "unset",
            claimed=any(row.id in claimed for row in rows),
            answers={row.build.name: _answer(row, fields) for row in rows},
        )
        for rows in told
    ]


def _fields(claimed: Iterable[CellRow]) -> list[FieldName]:
    """What the claim is about: what its cells ask for the draft, or else for the target."""
    asked = [*dict.fromkeys(name for row in claimed for name in row.asked)]
    return [name for name in asked if name.startswith(DRAFT)] or asked


def _asked(row: CellRow, owner: str) -> str:
    """`TRITON_ATTN`, `kv_cache_dtype fp8`; what is no owner's counts as the target's."""
    mine = {
        name: value
        for name, value in row.asked.items()
        if name.startswith(DRAFT) is (owner == DRAFT)
    }
    return ", ".join(
        value if name.endswith(ATTENTION) else f"{name.removeprefix(owner)} {value}"
        for name, value in mine.items()
    )


def _answer(row: CellRow, fields: Iterable[FieldName]) -> Answer:
    if row.outcome is None:
        return Answer(verdict=row.verdict, text="not run")
    if row.outcome != "runs":
        return Answer(verdict=row.verdict, text=row.category or row.outcome)
    parts = [_became(row, name) for name in fields]
    parts += [row.kv_layout] if row.kv_layout else []
    return Answer(verdict=row.verdict, text=", ".join(part for part in parts if part))


def _became(row: CellRow, name: FieldName) -> str:
    request = row.requests.get(name)
    if request is None or request.asked is not None or request.got is None:
        return wording.became(request)
    return f"{request.got} {request.verdict}"
