"""Show a run's matrix: on the screen, or for a pull request, a page, a program or CI."""

import sys
from collections.abc import Sequence

from orchestrator import reports
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS
from orchestrator.kept.run_directory import find
from orchestrator.reports import junit, markdown, terminal
from orchestrator.reports.document import to_json
from orchestrator.run import conclude

TEXTS = {
    "pr": markdown.to_comment,
    "md": markdown.to_markdown,
    "json": to_json,
    "junit": junit.to_junit,
}


def parser() -> Parser:
    words = Parser(
        "report",
        __doc__,
        {
            "report latest": "the newest run, on the screen",
            "report latest --format pr": "for a pull request, fit into a comment",
            "report 2026-12-02-demo --format junit": "for a CI system, of an older run",
        },
    ).runs()
    words.add_argument("--format", choices=("terminal", *TEXTS), default="terminal")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    run = find(chosen.run)
    document = reports.document_of(run, conclude(run))
    if chosen.format == "terminal":
        screen().print(terminal.render(document))
    else:
        sys.stdout.write(TEXTS[chosen.format](document))
    return SHIPS
