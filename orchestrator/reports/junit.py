"""The matrix for a CI system: *failed* is a failure, *not run* an error, *waived* is skipped."""

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from orchestrator.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import CellRow, Document


def to_junit(report: Document) -> str:
    xml = JUnitXml("vllm-matrix")
    for title, rows in wording.sections(report.cells):
        suite = TestSuite(_printable(title))
        for row in rows:
            suite.add_testcase(_case(row))
        xml.add_testsuite(suite)
    text: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode()


def _case(row: CellRow) -> TestCase:
    case = TestCase(f"{row.model}/{row.backend}", f"{row.hardware}.{row.build.name}")
    case.time = row.seconds or 0.0
    why = _printable(wording.why(row))
    match row.verdict:
        case Verdict.FAILED if row.waived:
            case.result = [Skipped(f"waived: {why}")]
        case Verdict.FAILED:
            case.result = [Failure(why, row.category)]
        case Verdict.NOT_RUN:
            case.result = [Error(why)]
        case Verdict.PASSED:
            pass
    return case


def _printable(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(sign for sign in text if sign >= " " or sign in "\t\n")
