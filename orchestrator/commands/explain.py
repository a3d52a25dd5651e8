"""Everything known of one cell, with a command that runs it alone."""

import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator import discretion, reports
from orchestrator.asked.conf_files import nearest
from orchestrator.commands.parsing import Parser
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept.run_directory import find
from orchestrator.reports import explain
from orchestrator.reports.document import Document
from orchestrator.reports.rows import CellRow
from orchestrator.run import conclude

LOG_LINES = 40


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
    log_lines = _log_tail(run.path, row)
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


def _log_tail(run: Path, row: CellRow) -> list[str]:
    """Of a failed engine only: a healthy one's log says little that the report does not."""
    if row.outcome in {None, "runs"} or row.log is None or not (run / row.log).is_file():
        return []
    log = (run / row.log).read_text(errors="replace")
    return str(discretion.plain(log)).splitlines()[-LOG_LINES:]
