"""The matrix on a screen."""

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Regression, Standing
from orchestrator.reports import before_after, difference_forms, wording
from orchestrator.reports.document import Document, ProofRow
from orchestrator.reports.rows import CellRow
from orchestrator.running.progress import STYLES

_WORDS = {"dropped": "yellow", "refused": "magenta", "honoured": "green"}
_STANDINGS = {
    Standing.PROVEN: "bold green",
    Standing.NOT_PROVEN: "bold red",
    Standing.INCOMPLETE: "bold yellow",
}


def render(report: Document) -> Group:
    return Group(*_parts(report))


def _parts(report: Document) -> Iterator[RenderableType]:
    for title, rows in wording.sections(report.cells):
        yield _table(title, rows)
        yield ""
    for row in report.cells:
        yield from _note(row)
    yield from _speeds(report.cells)
    yield ""
    yield from _changes(report)
    yield from _disagreements(report)
    if report.proof is not None:
        yield from _proof(report.proof, report.cells)
    if report.comparison is not None:
        yield from difference_forms.parts(report.comparison)
        yield ""
    if note := wording.emulation(report):
        yield Text(note, style="dim")
    for remark in report.gate.remarks:
        style = "bold red" if remark.blocks else "yellow"
        yield Text(f"waiver of {remark.waiver.cells}, {remark.trouble}: {remark.text}", style=style)
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
            _coloured(wording.got(row, "target")),
            _coloured(wording.got(row, "draft")),
            *([_coloured(wording.other_requests(row) or wording.NOTHING)] if others else []),
            " ".join(part for part in (row.kv_layout, row.runner) if part) or wording.NOTHING,
            wording.seconds(row),
        )
    return grid


def _coloured(text: str) -> Text:
    """By what became of the first request that it tells of."""
    word = text.split(", ", 1)[0].rsplit(" ", 1)[-1]
    return Text(text, style=_WORDS.get(word, ""))


def _note(row: CellRow) -> Iterator[Text]:
    """
    What a line of the table has no room for: why a cell did not pass, or how it failed.

    What is there to fail is in the table of the proof.
    """
    if wording.is_witness(row) or not (why := wording.why(row)):
        return
    kind = f"  {row.category}" if row.category else ""
    yield Text(f"{row.id}  {wording.verdict(row)}{kind}", style=_style(row))
    yield Text(f"    {why}", style="" if row.verdict is not Verdict.PASSED else "dim")
    if not _excused(row):
        yield from (Text(f"    {line}", style="dim") for line in wording.help_with(row))


def _speeds(rows: Iterable[CellRow]) -> Iterator[Text]:
    for row in rows:
        if row.speed:
            yield Text(f"{row.id}  speed of {row.speed[0].rounds} rounds, median (least to most)")
            yield from (Text(f"    {each}", style="dim") for each in row.speed)


def _changes(report: Document) -> Iterator[RenderableType]:
    for step, changes in wording.changelog(report.changes):
        yield Text(f"changed {step}", style="bold")
        for cells, what in changes:
            yield Text(f"  {cells}")
            yield Text(f"    {what}", style="dim")
        yield ""


def _disagreements(report: Document) -> Iterator[RenderableType]:
    if report.disagreements:
        yield Text("predicted ≠ observed", style="bold red")
        for each in report.disagreements:
            yield Text(f"  {each.cell_id}  {each}")
        yield ""


def _proof(proof: ProofRow, cells: tuple[CellRow, ...]) -> Iterator[RenderableType]:
    yield Text(proof.sentence, style=_STANDINGS[proof.standing])
    yield from (Text(f"  {reason}") for reason in proof.reasons)
    grid = Table(box=None)
    for title in ("card", "target asked", "draft asked"):
        grid.add_column(title, overflow="fold")
    for build, part in proof.arms.items():
        grid.add_column(Text(f"{part}: {build}"), overflow="fold")
    lines = before_after.lines(proof, cells)
    for line in lines:
        answers = [line.answers.get(build) for build in proof.arms]
        grid.add_row(
            Text(line.subject, style="" if line.claimed else "italic"),
            Text(line.target_asked),
            Text(line.draft_asked),
            *(Text(a.text, style=STYLES[a.verdict]) if a else wording.NOTHING for a in answers),
        )
    yield grid
    if not all(line.claimed for line in lines):
        yield Text("in italics: not part of the claim", style="dim italic")
    yield from _regressions("regressed with the fix", proof.regressions)
    yield from _regressions("regressed with another attempt, against the fix", proof.attempts)
    yield ""


def _regressions(title: str, regressions: Iterable[Regression]) -> Iterator[Text]:
    found = [*wording.regressions(regressions)]
    if found:
        yield Text(f"{title}: {len(found)}", style="bold")
        yield from (Text(f"  {cell}  {text}") for cell, text in found)


def _style(row: CellRow) -> str:
    return "dim" if _excused(row) else STYLES[row.verdict]


def _excused(row: CellRow) -> bool:
    return row.waived or wording.is_witness(row)
