"""The report for CI systems: each of them tells what failed from what was not seen, and from what is excused."""

import time
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.asked.policies import ConcernKind, Waiver
from orchestrator.concluded.judge import Verdict
from orchestrator.reports import junit
from orchestrator.reports.document import ConcernRow, Document
from tests.builders import a_cell, a_failed_report
from tests.unit import test_reports_of_proofs as proofs
from tests.unit.test_markdown import (
    FELL_BACK,
    HEALTHY,
    LOST,
    REFUSED,
    WAIVER,
    a_document,
    many,
)

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "data" / "junit.xsd")
ELSEWHERE = (
    a_cell("cpu/llama/port/v0_32"),
    a_failed_report("Address already in use", type_="OSError"),
)


def parsed(report: Document) -> ET.Element:
    text = junit.to_junit(report)
    SCHEMA.validate(text)
    return ET.fromstring(text)


def outcomes(report: Document) -> dict[str, str]:
    """Of each case, by its class and name."""
    return {
        f"{case.attrib['classname']} {case.attrib['name']}": next(
            (child.tag for child in case if child.tag != "system-out"), "passed"
        )
        for case in parsed(report).iter("testcase")
    }


def with_concern(report: Document, **concern: object) -> Document:
    found = ConcernRow(
        **{"cell_id": None, "verdict": None, "category": None, "reason": "so it is", "since": None}
        | concern  # type: ignore[arg-type]
    )
    return replace(report, gate=replace(report.gate, concerns=(*report.gate.concerns, found)))


def test_failed_is_a_failure_and_what_was_not_seen_is_an_error() -> None:
    assert outcomes(a_document(HEALTHY, REFUSED, LOST, FELL_BACK, ELSEWHERE)) == {
        "cpu.v0_32 llama/auto": "passed",
        "cpu.v0_32 llama/unknown": "passed",
        "cpu.v0_31 llama/lost": "error",
        "cpu.v0_32 eagle3/draft_triton": "failure",
        "cpu.v0_32 llama/port": "error",
        "gate coverage": "passed",
    }


def test_what_is_excused_is_skipped_and_says_by_whom() -> None:
    report = a_document(HEALTHY, FELL_BACK, waivers=(WAIVER,))
    [skipped] = parsed(report).iter("skipped")

    assert skipped.attrib["message"] == (
        "waived: failed: draft.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN "
        "(me: known)"
    )


def test_a_passing_cell_that_blocks_is_a_failure_and_one_that_is_tolerated_passes() -> None:
    cell, _ = HEALTHY
    drifted = {"kind": ConcernKind.DRIFT, "cell_id": cell.id, "verdict": Verdict.PASSED}
    report = a_document(HEALTHY)

    assert outcomes(with_concern(report, effect="blocks", **drifted))["cpu.v0_32 llama/auto"] == (
        "failure"
    )
    assert outcomes(with_concern(report, effect="tolerated", **drifted))[
        "cpu.v0_32 llama/auto"
    ] == ("passed")


def test_a_failure_says_all_that_is_needed_where_nothing_else_is_shown() -> None:
    [failure] = parsed(a_document(HEALTHY, FELL_BACK)).iter("failure")

    assert failure.attrib == {
        "message": "draft.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN",
        "type": "silent_fallback",
    }
    assert failure.text == (
        "cpu/eagle3/draft_triton/v0_32\n"
        "draft.attention_backend: TRITON_ATTN → CPU_ATTN dropped\n"
        "vllm: The engine runs on something else than was asked, and did not say so as an error.\n"
        "vllm-matrix explain 2026-12-02-demo cpu/eagle3/draft_triton/v0_32"
    )


def test_the_log_of_a_failed_cell_is_attached_and_no_other_file() -> None:
    hostile = (a_cell("cpu/llama/bad/v0_32"), a_failed_report("[[ATTACHMENT|/etc/shadow]]"))
    text = junit.to_junit(a_document(HEALTHY, hostile))

    assert text.count("[[ATTACHMENT|") == 1
    assert "<system-out>[[ATTACHMENT|runs/2026-12-02-demo/probe.log]]</system-out>" in text


def test_waivers_and_coverage_are_cases_also_when_they_are_well() -> None:
    ended = replace(WAIVER, cells="*/gone/*", expires=date(2026, 12, 1))
    outlived = replace(WAIVER, cells="cpu/llama/auto/*")
    report = a_document(HEALTHY, FELL_BACK, waivers=(WAIVER, ended, outlived))
    short = with_concern(report, kind=ConcernKind.COVERAGE, effect="blocks")
    gone = with_concern(short, kind=ConcernKind.GONE, effect="tolerated", cell_id="a/b/c/d")

    of_gate = {name: result for name, result in outcomes(gone).items() if name.startswith("gate")}
    assert of_gate == {
        "gate coverage": "failure",
        "gate gone a/b/c/d": "skipped",
        "gate waiver of *draft* (silent_fallback, me)": "passed",
        "gate waiver of */gone/* (silent_fallback, me)": "skipped",
        "gate waiver of cpu/llama/auto/* (silent_fallback, me)": "failure",
    }


def test_the_proof_is_a_case_and_what_is_there_to_fail_is_skipped() -> None:
    found = outcomes(proofs.a_document())

    assert found["mi300x-emulated.old llama/draft"] == "skipped"
    assert found["mi300x-emulated.first llama/flex"] == "skipped"
    assert found[f"proof {proofs.PROOF.claim}"] == "passed"


def test_a_suite_tells_its_build() -> None:
    suite = parsed(a_document(HEALTHY))[0]
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}

    assert suite.attrib["name"] == "cpu · v0_32 · vLLM 0.32.0"
    assert properties == {
        "card": "cpu",
        "engine mode": "real",
        "build": "v0_32",
        "origin": "release 0.32.0",
        "digest": "d1",
        "vLLM": "0.32.0",
    }


def test_counts_are_those_of_the_cases() -> None:
    root = parsed(a_document(HEALTHY, REFUSED, LOST, FELL_BACK, ELSEWHERE))
    tags = Counter(child.tag for case in root.iter("testcase") for child in case)

    assert root.attrib["tests"] == str(len([*root.iter("testcase")]))
    assert (root.attrib["failures"], root.attrib["errors"]) == (
        str(tags["failure"]),
        str(tags["error"]),
    )


def test_names_with_dots_make_no_packages() -> None:
    dotted = (a_cell("cpu/llama/auto/v0.32.1"), None)

    assert "cpu.v0_32_1 llama/auto" in outcomes(a_document(dotted))


@given(st.text(min_size=1))
def test_whatever_an_engine_says_the_report_is_xml_that_readers_take(said: str) -> None:
    cell = a_cell("cpu/llama/bad/v0_32")
    waiver = Waiver(cells=said, category="internal_error", reason=said, owner=said)

    parsed(a_document((cell, a_failed_report(said)), waivers=(waiver,)))


def test_thousands_of_cells_take_no_time() -> None:
    report = many(5000)
    began = time.process_time()
    junit.to_junit(report)

    assert time.process_time() - began < 5
