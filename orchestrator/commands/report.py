"""Show a run's matrix: on the screen, or for a pull request, a page, a program or CI."""

import sys
from collections.abc import Sequence

from orchestrator import github, reports
from orchestrator.commands import annotating, ci
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS
from orchestrator.kept.run_directory import find
from orchestrator.reports import junit, markdown, page, terminal
from orchestrator.reports.document import to_json
from orchestrator.run import conclude

TEXTS = {
    "pr": lambda report: markdown.to_comment(report, ci.page()),
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
            "report latest --format html": "a page to look at, as a run's matrix.html",
            "report latest --format github": "annotations and a summary, in a job of GitHub's",
        },
    ).runs()
    forms = ("terminal", "html", "github", *TEXTS)
    words.add_argument("--format", choices=forms, default="terminal")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    run = find(chosen.run)
    result = conclude(run)
    document = reports.document_of(run, result)
    match chosen.format:
        case "terminal":
            screen().print(terminal.render(document))
        case "html":
            sys.stdout.write(page.to_html(run, result, document))
        case "github":
            sys.stdout.write(github.to_commands(annotating.found(run, document)))
            annotating.summarise(document)
        case form:
            sys.stdout.write(TEXTS[form](document))
    return SHIPS
