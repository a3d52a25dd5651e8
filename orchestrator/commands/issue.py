"""An issue for vLLM's people, filled in from one cell of a run: Markdown, to read and to paste."""

import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.commands.parsing import Parser
from orchestrator.commands.reproduce import told
from orchestrator.concluded.judge import Verdict
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept import logs
from orchestrator.kept.run_directory import find
from orchestrator.reports import explain, upstream_issue


def parser() -> Parser:
    words = Parser(
        "issue",
        __doc__,
        {
            "issue latest cpu/llama/triton_attn/v0_32": "title, environment, what came, a program",
            "issue latest CELL -o issue.md": "into a file",
        },
    ).runs()
    words.add_argument("cell", metavar="CELL", help="its id: hardware/model/backend/build")
    words.add_argument("-o", "--output", metavar="FILE", help="instead of the output")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    run = find(chosen.run)
    story, row = told(run, chosen.cell)
    if row.verdict is Verdict.PASSED and row.failure is None:
        raise ConfigError(f"{row.id} passed, so there is nothing to tell vLLM's people")
    log = explain.telling_log(row)
    lines = logs.tail(run.path, log, upstream_issue.LOG_LINES) if log else []
    text = run.asked().redactor().text(upstream_issue.to_markdown(story, row, lines))
    if chosen.output is None:
        sys.stdout.write(text)
    else:
        Path(chosen.output).write_text(text)
    return SHIPS
