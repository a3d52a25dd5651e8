"""The matrix for a CI system: *failed* is a failure, *not run* an error.

Skipped is what does not block: a waived failure, and one of a build that is there to fail.
"""

from collections.abc import Iterable

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.predictions import Disagreement
from orchestrator.concluded.proof import Standing
from orchestrator.reports import foreign, wording
from orchestrator.reports.document import Document, ProofRow
from orchestrator.reports.rows import CellRow


def to_junit(report: Document) -> str:
    xml = JUnitXml("vllm-matrix")
    for title, rows in wording.sections(report.cells):
        suite = TestSuite(foreign.xml(title))
        for row in rows:
            suite.add_testcase(_case(row))
        xml.add_testsuite(suite)
    if report.disagreements:
        xml.add_testsuite(_disagreements(report.disagreements))
    if report.proof is not None:
        xml.add_testsuite(_proof(report.proof))
    text: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode()


def _case(row: CellRow) -> TestCase:
    case = TestCase(f"{row.model}/{row.backend}", f"{row.card}.{row.build.name}")
    case.time = row.seconds or 0.0
    why = foreign.xml(wording.why(row))
    match row.verdict:
        case Verdict.FAILED if row.waived:
            case.result = [Skipped(f"waived: {why}")]
        case Verdict.FAILED if wording.is_witness(row):
            case.result = [Skipped(f"{row.arm}: {why}")]
        case Verdict.FAILED:
            failure = Failure(why, row.category)
            failure.text = foreign.xml("\n".join(wording.help_with(row)))
            case.result = [failure]
        case Verdict.NOT_RUN:
            case.result = [Error(why)]
        case Verdict.PASSED:
            pass
    return case


def _disagreements(disagreements: Iterable[Disagreement]) -> TestSuite:
    suite = TestSuite("predicted ≠ observed")
    for each in disagreements:
        case = TestCase(f"{each.cell_id} {each.field}", "predictions")
        case.result = [Failure(foreign.xml(str(each)), "prediction_differs")]
        suite.add_testcase(case)
    return suite


def _proof(proof: ProofRow) -> TestSuite:
    case = TestCase(foreign.xml(proof.claim), "proof")
    why = foreign.xml("\n".join([proof.sentence, *proof.reasons]))
    match proof.standing:
        case Standing.NOT_PROVEN:
            case.result = [Failure(why, "not_proven")]
        case Standing.INCOMPLETE:
            case.result = [Error(why)]
        case Standing.PROVEN:
            pass
    suite = TestSuite("proof")
    suite.add_testcase(case)
    return suite
