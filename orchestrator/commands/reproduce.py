"""A shell script with which anybody gets what a cell got, without vllm-matrix."""

import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator import reports
from orchestrator.commands.explain import row_of
from orchestrator.commands.parsing import Parser
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept import ingredients
from orchestrator.kept.run_directory import RunDirectory, find
from orchestrator.reports import reproducing, wording
from orchestrator.reports.reproducing import Story
from orchestrator.reports.rows import CellRow
from orchestrator.run import conclude


def parser() -> Parser:
    words = Parser(
        "reproduce",
        __doc__,
        {"reproduce latest cpu/llama/triton_attn/v0_32 -o show.sh": "then: sh show.sh"},
    ).runs()
    words.add_argument("cell", metavar="CELL", help="its id: hardware/model/backend/build")
    words.add_argument(
        *("-o", "--output"), metavar="FILE", help="where to write it; without it, to the output"
    )
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    run = find(chosen.run)
    story, _ = told(run, chosen.cell)
    text = run.asked().redactor().text(reproducing.script(story))
    if chosen.output is None:
        sys.stdout.write(text)
    else:
        file = Path(chosen.output)
        file.write_text(text)
        file.chmod(0o755)
        sys.stderr.write(f"{file}: {len(text) // 1024 + 1} KiB; run it with: sh {file}\n")
    return SHIPS


def told(run: RunDirectory, cell_id: str) -> tuple[Story, CellRow]:
    """Raises ConfigError for a cell that was never tried."""
    result = conclude(run)
    document = reports.document_of(run, result)
    row = row_of(document, cell_id)
    cell = next(cell for cell in result.matrix.cells if cell.id == cell_id)
    record = result.matrix.record(cell)
    if record is None or record.attempt is None:
        why = "; ".join(result.matrix.reasons(cell))
        raise ConfigError(f"{cell_id} was never tried, so there is nothing to reproduce: {why}")
    why = wording.why(row)
    story = Story(
        run=document.run,
        cell=cell,
        record=record,
        ingredients=ingredients.gather(cell, record.build),
        standing=f"{wording.verdict(row)}{f': {why}' if why else ''}",
    )
    return story, row
