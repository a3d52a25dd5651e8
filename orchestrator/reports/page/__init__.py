"""The matrix as one HTML file that needs nothing else: for people who would rather look."""

from collections.abc import Iterator
from datetime import datetime

from orchestrator.concluded.matrix import Matrix
from orchestrator.kept import logs
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.reports import explain
from orchestrator.reports.document import Document
from orchestrator.reports.page import bundle, content
from orchestrator.run import Result


def to_html(run: RunDirectory, result: Result, report: Document) -> str:
    def log(path: str) -> list[str]:
        return logs.tail(run.path, path, explain.LOG_LINES)

    return bundle.page(
        title=f"{report.suite}: {report.gate.sentence}",
        run=" · ".join([f"suite {report.suite}", report.run, *_ended(result.matrix)]),
        sentence=report.gate.sentence,
        ships=report.gate.ships,
        data=content.to_json(report, result.matrix, run.asked().command, log),
    )


def _ended(matrix: Matrix) -> Iterator[str]:
    """The time of its last record."""
    if last := max((record.at for record in matrix.records.values()), default=None):
        yield datetime.fromisoformat(last).strftime("%Y-%m-%d %H:%M %Z")
