"""The whole story of one cell: asked, got, why, before, and how to see it again."""

import sys
from collections.abc import Iterator, Sequence

from orchestrator import reports
from orchestrator.asked import cell_ids
from orchestrator.asked.conf_files import nearest
from orchestrator.commands.parsing import Parser
from orchestrator.concluded.timeline import timelines
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept import logs, past
from orchestrator.kept.run_directory import RunDirectory, find
from orchestrator.reports import asking, explain, history
from orchestrator.reports.document import Document
from orchestrator.reports.rows import CellRow
from orchestrator.run import conclude

RUNS_READ = 20
ENTRIES_SHOWN = 8


def parser() -> Parser:
    words = Parser(
        "explain",
        __doc__,
        {"explain latest cpu/llama/triton_attn/v0_32": "what became of that cell, and why"},
    ).runs()
    words.add_argument("cell", metavar="CELL", help="its id: hardware/model/backend/build")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    run = find(chosen.run)
    document = reports.document_of(run, conclude(run))
    row = row_of(document, chosen.cell)
    log = explain.telling_log(row)
    asked = run.asked()
    beside = explain.Beside(
        asked=tuple(asking.lines(next(each for each in asked.cells if each.id == row.id))),
        log=logs.tail(run.path, log, explain.LOG_LINES) if log else (),
        history=tuple(_history(run, row.id)),
    )
    sys.stdout.write(explain.to_text(document, row, asked.command, beside))
    return SHIPS


def _history(run: RunDirectory, cell_id: str) -> Iterator[str]:
    """With every build, in the newest runs of the same folder."""
    runs = past.runs_in(run.path.parent)[-RUNS_READ:]
    if not any(each.path.name == run.path.name for each in runs):
        return
    entries, _ = past.entries(runs, cell_ids.question(cell_id))
    for question in history.build(timelines(entries), ()).questions:
        yield from history.lines(question, ENTRIES_SHOWN)


def row_of(document: Document, cell_id: str) -> CellRow:
    rows = {row.id: row for row in document.cells}
    if cell_id not in rows:
        raise ConfigError(
            f"{document.run} has no cell {cell_id}.{nearest(cell_id, [*rows])}"
            f" Its cells are listed by: vllm-matrix report {document.run}"
        )
    return rows[cell_id]
