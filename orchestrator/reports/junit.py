"""
The matrix for a CI system: a suite for each card and build, and one for the gate itself.

*Failure* is a reason to block that is vLLM's or ours; *error* is what was not seen: a cell that
was not run, or failed for the cluster's reasons. *Skipped* is what is wrong and does not block.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from orchestrator.asked.policies import ConcernKind, Waiver
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Standing
from orchestrator.reports import wording
from orchestrator.reports.document import ConcernRow, Document, ProofRow, RemarkRow
from orchestrator.reports.foreign import xml
from orchestrator.reports.rows import CellRow

UNSEEN = (
    ConcernKind.NOT_RUN,
    ConcernKind.INFRASTRUCTURE,
    ConcernKind.NO_VERDICT,
    ConcernKind.BASELINE,
)
OF_CLAIM = (ConcernKind.CLAIM, ConcernKind.BROKEN_BY_FIX)
"""Told by the proof's own suite."""


def to_junit(report: Document) -> str:
    found = JUnitXml(xml(f"vllm-matrix {report.suite}"))
    concerns: dict[str | None, list[ConcernRow]] = {}
    for each in report.gate.concerns:
        concerns.setdefault(each.cell_id, []).append(each)
    for title, rows in wording.sections(report.cells):
        cases = (_case(report, row, concerns.get(row.id, [])) for row in rows)
        found.add_testsuite(_suite(title, cases, rows))
    found.add_testsuite(_suite("gate", _gate(report)))
    if report.proof is not None:
        found.add_testsuite(_suite("proof", _proof(report.proof)))
    found.update_statistics()  # type: ignore[no-untyped-call]
    text: bytes = found.tostring()  # type: ignore[no-untyped-call]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text.decode()}\n'


def _suite(title: str, cases: Iterable[TestCase], rows: Sequence[CellRow] = ()) -> TestSuite:
    suite = TestSuite(xml(title))
    for name, value in _properties(rows) if rows else ():
        if value is not None:
            suite.add_property(xml(name), xml(value))
    suite.add_testcases([*cases])  # which counts them once, and not with each of them
    return suite


def _properties(rows: Sequence[CellRow]) -> Iterator[tuple[str, str | None]]:
    """Of a suite: some readers know none of a case."""
    build = max((row.build for row in rows), key=lambda build: build.digest is not None)
    yield "card", rows[0].card
    yield "engine mode", str(rows[0].engine_mode)
    yield "build", build.name
    yield "origin", build.origin
    yield "checkout", build.checkout
    yield "digest", build.digest
    yield "vLLM", build.vllm_version
    for patch, digest in build.patches.items():
        yield f"patch {patch}", digest or "never applied"


def _case(report: Document, row: CellRow, concerns: Sequence[ConcernRow]) -> TestCase:
    """Jenkins takes what stands before the last dot for a package, so there is only ours."""
    card, build = row.card.replace(".", "_"), row.build.name.replace(".", "_")
    case = TestCase(xml(f"{row.model}/{row.backend}"), xml(f"{card}.{build}"))
    case.time = row.seconds or 0.0
    told = [each for each in concerns if each.kind not in OF_CLAIM]
    case.result = _results(told, "\n".join(_story(report, row)))
    if not told and wording.is_witness(row):
        case.result = [Skipped(xml(f"{row.arm}: {wording.why(row)}"))]
    if row.verdict is not Verdict.PASSED and (seen := "\n".join(_seen(report, row))):
        case.system_out = seen
    return case


def _results(concerns: Sequence[ConcernRow], story: str) -> list[FinalResult]:
    """One: not every reader takes several. All that blocks is in it."""
    blocking = [each for each in concerns if each.effect == "blocks"]
    if blocking:
        unseen = all(each.kind in UNSEEN for each in blocking)
        result = (Error if unseen else Failure)(
            xml("; ".join(map(_line, blocking))), xml(_type(blocking[0]))
        )
        result.text = xml(story)
        return [result]
    excused = [each for each in concerns if each.verdict not in {Verdict.PASSED, None}]
    return [Skipped(xml("; ".join(map(_line, excused))))] if excused else []


def _line(concern: ConcernRow) -> str:
    if concern.effect == "blocks":
        return concern.reason
    why = f"{concern.effect}: {concern.kind}: {concern.reason}"
    return f"{why} ({_owned(concern.waiver)})" if concern.waiver else why


def _type(concern: ConcernRow) -> str:
    return concern.category or str(concern.kind)


def _owned(waiver: Waiver) -> str:
    return f"{waiver.owner}: {waiver.reason}"


def _story(report: Document, row: CellRow) -> Iterator[str]:
    """What a person needs who sees nothing else."""
    yield row.id
    for field, request in row.requests.items():
        if request.asked is not None:
            yield f"{field}: {wording.became(request)}"
    yield from wording.help_with(row)
    yield f"vllm-matrix explain {PurePath(report.run).name} {row.id}"


def _seen(report: Document, row: CellRow) -> Iterator[str]:
    """Where its log is, as GitLab and a plug-in of Jenkins' want it, which then show it."""
    if row.log is not None and row.kept_from is None and not PurePath(row.log).is_absolute():
        yield f"[[ATTACHMENT|{PurePath(report.run, row.log)}]]"


def _gate(report: Document) -> Iterator[TestCase]:
    """What is of the run as a whole, and every waiver, so that both are there also when well."""
    ids = {row.id for row in report.cells}
    others = [each for each in report.gate.concerns if each.cell_id not in ids]
    for kind in (ConcernKind.COVERAGE, ConcernKind.BASELINE):
        alike = [each for each in others if each.kind is kind]
        if alike or kind is ConcernKind.COVERAGE:
            yield _of_gate(str(kind), _results(alike, report.gate.sentence))
    for each in others:
        if each.kind is ConcernKind.GONE and each.cell_id is not None:
            gone = _results([each], each.reason) or [Skipped(xml(_line(each)))]
            yield _of_gate(f"gone {each.cell_id}", gone)
    remarks = {_named(remark.waiver): remark for remark in report.gate.remarks}
    used = [_named(each.waiver) for each in report.gate.concerns if each.waiver is not None]
    for name in dict.fromkeys([*remarks, *used]):
        yield _of_gate(name, _of_waiver(remarks.get(name)))


def _of_gate(name: str, results: Sequence[FinalResult]) -> TestCase:
    case = TestCase(xml(name), "gate")
    case.result = [*results]
    return case


def _named(waiver: Waiver) -> str:
    what = waiver.category or waiver.verdict
    return f"waiver of {waiver.cells} ({what}, {waiver.owner})"


def _of_waiver(remark: RemarkRow | None) -> list[FinalResult]:
    if remark is None:
        return []
    text = xml(f"{remark.trouble}: {remark.text}")
    if not remark.blocks:
        return [Skipped(text)]
    return [Failure(text, "waiver")]


def _proof(proof: ProofRow) -> Iterator[TestCase]:
    case = TestCase(xml(proof.claim), "proof")
    why = xml("\n".join([proof.sentence, *proof.reasons]))
    match proof.standing:
        case Standing.NOT_PROVEN:
            case.result = [Failure(why, "not_proven")]
        case Standing.INCOMPLETE:
            case.result = [Error(why, "incomplete")]
        case Standing.PROVEN:
            pass
    yield case
    for each, text in wording.regressions(proof.regressions):
        broken = TestCase(xml(each), "proof.broken_by_the_fix")
        broken.result = [Failure(xml(text), "broken_by_the_fix")]
        yield broken
