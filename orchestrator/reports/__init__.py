"""One module per form of report. Each turns a Document into text; they decide nothing."""

from pathlib import PurePath

from orchestrator import discretion
from orchestrator.kept.run_directory import SUMMARY, RunDirectory
from orchestrator.reports import document, junit, markdown, page
from orchestrator.reports.document import Document, to_json
from orchestrator.run import Result, conclude


def document_of(run: RunDirectory, result: Result) -> Document:
    asked = run.asked()
    discretion.hide({}, words=asked.words())
    return document.build(str(PurePath(run.path)), asked.suite, result.matrix, result.decision)


def write_all(run: RunDirectory) -> Result:
    """Leave every form of report in the run directory."""
    result = conclude(run)
    report = document_of(run, result)
    run.write(SUMMARY, to_json(report))
    run.write("matrix.md", markdown.to_markdown(report))
    run.write("matrix.html", page.to_html(run, result, report))
    run.write("junit.xml", junit.to_junit(report))
    return result
