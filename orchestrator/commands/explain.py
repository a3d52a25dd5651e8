"""Everything known of one cell, with a command that runs it alone."""

import sys
from collections.abc import Sequence

from orchestrator import reports
from orchestrator.asked.conf_files import nearest
from orchestrator.commands.parsing import Parser
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept import logs
from orchestrator.kept.run_directory import find
from orchestrator.reports import explain
from orchestrator.reports.document import Document
from orchestrator.reports.rows import CellRow
from orchestrator.run import conclude


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
    row = _row(document, chosen.cell)
    log = explain.telling_log(row)
    log_lines = logs.tail(run.path, log, explain.LOG_LINES) if log else []
    sys.stdout.write(explain.to_text(document, row, run.asked().command, log_lines))
    return SHIPS


def _row(document: Document, cell_id: str) -> CellRow:
    rows = {row.id: row for row in document.cells}
    if cell_id not in rows:
        raise ConfigError(
            f"{document.run} has no cell {cell_id}.{nearest(cell_id, [*rows])}"
            f" Its cells are listed by: vllm-matrix report {document.run}"
        )
    return rows[cell_id]
