"""The matrix on a screen."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.judge import Verdict
from orchestrator.progress import STYLES
from orchestrator.reports import wording
from orchestrator.reports.document import CellRow, Document


def render(report: Document) -> Group:
    return Group(*_parts(report))


def _parts(report: Document) -> Iterator[RenderableType]:
    for title, rows in wording.sections(report.cells):
        yield _table(title, rows)
        yield ""
    for row in report.cells:
        yield from _note(row)
    yield ""
    style = "bold green" if report.gate.ships else "bold red"
    yield Text(f"gate {report.gate.sentence}", style=style)


def _table(title: str, rows: list[CellRow]) -> Table:
    grid = Table(title=escape(title), title_justify="left", title_style="bold", box=None)
    grid.add_column("model / backend", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("target got")
    grid.add_column("draft got")
    others = any(map(wording.other_requests, rows))
    if others:
        grid.add_column("other requests")
    grid.add_column("layout, runner")
    grid.add_column("s", justify="right", no_wrap=True)
    for row in rows:
        grid.add_row(
            escape(f"{row.model} / {row.backend}"),
            Text(wording.verdict(row), style=_style(row)),
            _coloured(wording.attention(row, "target")),
            _coloured(wording.attention(row, "draft")),
            *([_coloured(wording.other_requests(row) or wording.NOTHING)] if others else []),
            " ".join(part for part in (row.kv_layout, row.runner) if part) or wording.NOTHING,
            wording.seconds(row),
        )
    return grid


def _coloured(text: str) -> Text:
    word = text.rsplit(" ", 1)[-1]
    style = {"dropped": "yellow", "refused": "magenta", "honoured": "green"}.get(word, "")
    return Text(text, style=style)


def _note(row: CellRow) -> Iterator[Text]:
    """What a line of the table has no room for: why a cell did not pass, or how it failed."""
    if not (why := wording.why(row)):
        return
    kind = f"  {row.category}" if row.category else ""
    yield Text(f"{row.id}  {wording.verdict(row)}{kind}", style=_style(row))
    yield Text(f"    {why}", style="" if row.verdict is not Verdict.PASSED else "dim")
    if row.failure is not None and row.verdict is not Verdict.PASSED and not row.waived:
        yield Text(f"    {row.failure.owner}: {row.failure.next}", style="dim")


def _style(row: CellRow) -> str:
    return "dim" if row.waived else STYLES[row.verdict]
