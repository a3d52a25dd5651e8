"""The matrix for a pull request or a page."""

from collections.abc import Iterator

from orchestrator.reports import wording
from orchestrator.reports.document import CellRow, Document

_SIGNS = {"passed": "✅", "failed": "❌", "not run": "⚪"}
_COLUMNS = (
    "model",
    "backend",
    "verdict",
    "target got",
    "draft got",
    "other requests",
    "KV layout",
    "runner",
    "s",
)


def to_markdown(report: Document) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Document) -> Iterator[str]:
    yield f"**{_text(report.gate.sentence)}** (suite `{report.suite}`)"
    for title, rows in wording.sections(report.cells):
        yield f"\n### {_text(title)}\n"
        yield f"| {' | '.join(_COLUMNS)} |"
        yield "|" + "---|" * len(_COLUMNS)
        yield from map(_row, rows)
    noted = [row for row in report.cells if wording.why(row)]
    if noted:
        yield "\n### Notes\n"
        for row in noted:
            kind = f" ({row.category})" if row.category else ""
            yield f"- `{row.id}` {wording.verdict(row)}{kind}: {_text(wording.why(row))}"


def _row(row: CellRow) -> str:
    fields = (
        row.model,
        row.backend,
        f"{_SIGNS[row.verdict]} {wording.verdict(row)}",
        wording.attention(row, "target"),
        wording.attention(row, "draft"),
        wording.other_requests(row) or wording.NOTHING,
        row.kv_layout or wording.NOTHING,
        row.runner or wording.NOTHING,
        wording.seconds(row),
    )
    return f"| {' | '.join(map(_text, fields))} |"


def _text(text: str) -> str:
    """Engine messages are somebody else's text: they must not become markup."""
    for sign in "\\`*_<>|[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
