"""The matrix on a screen."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import CellRow, Document

STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.NOT_RUN: "yellow"}


def render(report: Document) -> Group:
    return Group(*_parts(report))


def _parts(report: Document) -> Iterator[RenderableType]:
    for title, rows in wording.sections(report.cells):
        yield _table(title, rows)
        yield ""
    troubled = [row for row in report.cells if row.verdict is not Verdict.PASSED]
    for row in troubled:
        yield from _trouble(row)
    if troubled:
        yield ""
    style = "bold green" if report.gate.ships else "bold red"
    yield Text(f"gate {report.gate.sentence}", style=style)


def _table(title: str, rows: list[CellRow]) -> Table:
    grid = Table(title=escape(title), title_justify="left", title_style="bold", box=None)
    for column in ("model", "backend", "verdict", "target got", "draft got", "layout", "runner"):
        grid.add_column(column, overflow="fold")
    grid.add_column("s", justify="right")
    for row in rows:
        grid.add_row(
            row.model,
            row.backend,
            Text(wording.verdict(row), style="dim" if row.waived else STYLES[row.verdict]),
            _coloured(wording.attention(row, "target")),
            _coloured(wording.attention(row, "draft")),
            row.kv_layout or wording.NOTHING,
            row.runner or wording.NOTHING,
            wording.seconds(row),
        )
    return grid


def _coloured(text: str) -> Text:
    word = text.rsplit(" ", 1)[-1]
    style = {"dropped": "yellow", "refused": "magenta", "honoured": "green"}.get(word, "")
    return Text(text, style=style)


def _trouble(row: CellRow) -> Iterator[Text]:
    head = f"{row.id}  {wording.verdict(row)}"
    if row.failure is not None:
        head += f"  {row.failure.category}, owner {row.failure.owner}"
    yield Text(head, style="dim" if row.waived else STYLES[row.verdict])
    for reason in row.reasons:
        yield Text(f"    {reason}")
    if row.failure is not None and not row.waived:
        yield Text(f"    next: {row.failure.next}", style="dim")
