"""The matrix for a pull request or a page, in GitHub's Markdown."""

from collections.abc import Iterable, Iterator

from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Regression
from orchestrator.reports import before_after, wording
from orchestrator.reports.before_after import Line
from orchestrator.reports.document import Document, ProofRow
from orchestrator.reports.rows import CellRow

_SIGNS = {Verdict.PASSED: "✅", Verdict.FAILED: "❌", Verdict.NOT_RUN: "⚪"}
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
    if report.proof is None:
        yield from _answer(report)
        yield from _emulation(report)
        yield from _disagreements(report)
        yield from _changes(report)
        yield from _matrix(report)
        return
    yield f"**{_text(report.proof.sentence)}**"
    yield from _proof(report.proof, report.cells)
    yield from _emulation(report)
    yield ""
    yield from _answer(report)
    yield from _disagreements(report)
    yield f"\n<details>\n<summary>The whole matrix: {len(report.cells)} cells</summary>"
    yield from _matrix(report)
    yield "\n</details>"


def _answer(report: Document) -> Iterator[str]:
    yield f"**{_text(report.gate.sentence)}** (suite `{report.suite}`)"


def _emulation(report: Document) -> Iterator[str]:
    if note := wording.emulation(report):
        yield f"\n<sub>{_text(note)}</sub>"


def _proof(proof: ProofRow, cells: tuple[CellRow, ...]) -> Iterator[str]:
    if proof.reasons:
        yield ""
        yield from (f"- {_text(reason)}" for reason in proof.reasons)
    builds = [f"{part}: `{build}`" for build, part in proof.arms.items()]
    yield ""
    yield from _table(
        ["card", "target asked", "draft asked", *builds],
        (_compared(line, proof) for line in before_after.lines(proof, cells)),
    )
    models = dict.fromkeys(f"`{row.model}`" for row in cells if row.id in proof.cells)
    yield f"\nModel: {', '.join(models) or 'none'}. _Italic_: not part of the claim."
    yield from _regressions("Regressions with the fix", proof.regressions)
    if "attempt" in proof.arms.values():
        yield from _regressions("Regressions of other attempts, against the fix", proof.attempts)


def _compared(line: Line, proof: ProofRow) -> Iterator[str]:
    asked = map(_text, (line.subject, line.target_asked, line.draft_asked))
    yield from asked if line.claimed else (f"_{text}_" for text in asked)
    for build in proof.arms:
        answer = line.answers.get(build)
        yield f"{_SIGNS[answer.verdict]} {_text(answer.text)}" if answer else wording.NOTHING


def _regressions(title: str, regressions: Iterable[Regression]) -> Iterator[str]:
    found = [*wording.regressions(regressions)]
    yield f"\n**{title}:** {len(found) or 'none'}"
    if found:
        yield ""
    yield from (f"- `{cell}` {_text(text)}" for cell, text in found)


def _disagreements(report: Document) -> Iterator[str]:
    if report.disagreements:
        yield "\n### Predicted ≠ observed\n"
        columns = ("cell", "field", "predicted", "observed", "where")
        yield from _table(
            columns,
            (
                map(_text, (each.cell_id, each.field, each.predicted, each.observed, each.source))
                for each in report.disagreements
            ),
        )


def _changes(report: Document) -> Iterator[str]:
    for step, changes in wording.changelog(report.changes):
        yield f"\n### {_text(step)}\n"
        yield from (f"- **{_text(cells)}**: {_text(what)}" for cells, what in changes)


def _matrix(report: Document) -> Iterator[str]:
    for title, rows in wording.sections(report.cells):
        yield f"\n### {_text(title)}\n"
        yield from _table(_COLUMNS, map(_row, rows))
    noted = [row for row in report.cells if wording.why(row)]
    if noted:
        yield "\n### Notes\n"
        for row in noted:
            kind = f" ({row.category})" if row.category else ""
            yield f"- `{row.id}` {wording.verdict(row)}{kind}: {_text(wording.why(row))}"
            yield from (f"  - {_text(line)}" for line in wording.help_with(row))


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    columns = [*columns]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _row(row: CellRow) -> Iterable[str]:
    fields = (
        row.model,
        row.backend,
        f"{_SIGNS[row.verdict]} {wording.verdict(row)}",
        wording.got(row, "target"),
        wording.got(row, "draft"),
        wording.other_requests(row) or wording.NOTHING,
        row.kv_layout or wording.NOTHING,
        row.runner or wording.NOTHING,
        wording.seconds(row),
    )
    return map(_text, fields)


def _text(text: str) -> str:
    """Engine messages are somebody else's text: no markup, and nobody gets mentioned."""
    for sign in "\\`*_~<>|[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.replace("&", "&amp;").replace("@", "@\N{WORD JOINER}").split())
