"""The report for a pull request: what decides comes first, and it fits into a comment."""

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from jobs.contract.seen import ProbeReport
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, Expectation
from orchestrator.asked.policies import ConcernKind, Gate, Waiver
from orchestrator.concluded import matrix
from orchestrator.concluded.comparison import Side, compare
from orchestrator.concluded.gate import decide
from orchestrator.concluded.judge import judge
from orchestrator.concluded.predictions import Disagreement
from orchestrator.concluded.record import Record
from orchestrator.reports import document, markdown
from orchestrator.reports.document import Document
from tests.builders import EAGLE3, a_build, a_cell, a_failed_report, a_report, an_attempt, groups

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TRITON = Asked(attention_backend="TRITON_ATTN")
HOSTILE = (
    "boom </details></code></pre><script>alert(1)</script> <img src=x onerror=alert(1)>\n"
    "```\n# heading\n| a | b |\n| - [x] @octocat fixes #1, GH-2, https://evil.example :tada: $x$"
)
OURS = {
    *("p", "strong", "em", "code", "pre", "h3", "ul", "li", "sub", "span", "a"),
    *("details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
}


class Tree(HTMLParser):
    """The tags, and that each is closed in its turn; text outside of code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags = Counter[str]()
        self.widths: list[set[int]] = []
        self.outline: list[str] = []
        self.prose = ""
        self._open: list[str] = []
        self._cells = 0
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.tags[tag] += 1
        self._open.append(tag)
        match tag:
            case "table":
                self.widths.append(set())
            case "tr":
                self._cells = 0
            case "td" | "th":
                self._cells += 1
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "tr":
            self.widths[-1].add(self._cells)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"h3", "summary"}:
            self.outline.append(data)
        if not {"code", "pre"} & {*self._open}:
            self.prose += data


def rendered(text: str) -> Tree:
    return Tree(RENDERER.render(text))


def a_document(
    *found: tuple[Cell, ProbeReport | None], waivers: tuple[Waiver, ...] = ()
) -> Document:
    cells = [cell for cell, _ in found]
    records = [recorded(cell, report) for cell, report in found if report is not None]
    result = matrix.build(cells, records)
    decision = decide(result, Gate(waivers=waivers), today=date(2026, 12, 2))
    return document.build("runs/2026-12-02-demo", "demo", result, decision)


def recorded(cell: Cell, report: ProbeReport) -> Record:
    attempt = an_attempt(report, cell_id=cell.id)
    build = a_build(cell.build.name)
    judgement = judge(cell, build, attempt)
    return Record(cell_id=cell.id, build=build, attempt=attempt, judgement=judgement)


FELL_BACK = (
    a_cell("cpu/eagle3/draft_triton/v0_32", draft=TRITON, speculative=EAGLE3),
    a_report(draft=groups("CPU_ATTN")),
)
REFUSED = (
    a_cell("cpu/llama/unknown/v0_32", target=TRITON, expect=Expectation(outcome=("refused",))),
    a_failed_report("Unknown attention backend: X. Valid options are: A"),
)
HEALTHY = (a_cell(), a_report())
LOST = (a_cell("cpu/llama/lost/v0_31"), None)
WAIVER = Waiver(cells="*draft*", category="silent_fallback", reason="known", owner="me")


def many(count: int, message: str = "broken {}") -> Document:
    return a_document(
        *(
            (a_cell(f"cpu/llama/b{n}/v{n % 4}"), a_failed_report(message.format(n)))
            for n in range(count)
        )
    )


def test_what_blocks_comes_first_and_what_passed_last() -> None:
    report = a_document(HEALTHY, REFUSED, LOST, FELL_BACK)
    report = replace(
        report,
        disagreements=(
            Disagreement(cell_id="x", field="f", predicted="a", observed="b", source="s"),
        ),
    )

    assert rendered(markdown.to_markdown(report)).outline == [
        "What blocks",
        "Predicted ≠ observed",
        "Cards and builds",
        "cpu · v0_32 · vLLM 0.32.0: 2 passed, 1 failed",
        "cpu · v0_31: 1 not run",
        "Fails as expected: 1 cell",
    ]


def test_the_first_line_is_the_gates_answer() -> None:
    text = markdown.to_markdown(a_document(HEALTHY, FELL_BACK))

    assert text.splitlines()[0] == (
        "**blocked: 1 failed (silent\\_fallback) of 2 cells** (suite `demo`, run `2026-12-02-demo`)"
    )


def test_cells_that_fail_for_one_reason_are_one_entry_and_folded_where_they_are_many() -> None:
    text = markdown.to_markdown(many(5, "broken"))

    assert text.count("❌ **failed (internal\\_error)** in 5 cells of 4 builds: ") == 1
    assert "<summary>these 5 cells</summary>" in text
    assert text.count("vllm: ") == 1
    assert "\n  ```text\n  at vllm/x.py:1 f\n  ```\n" in text


def test_what_blocks_is_sorted_as_the_gate_weighs_it() -> None:
    elsewhere = (
        a_cell("cpu/llama/port/v0_32"),
        a_failed_report("Address already in use", type_="OSError"),
    )
    text = markdown.to_markdown(a_document(LOST, elsewhere, FELL_BACK))

    kinds = re.findall(r"^- (\S+) \*\*(.+?)\*\*", text, flags=re.MULTILINE)
    assert kinds == [
        ("❌", "failed (silent\\_fallback)"),
        ("⚪", "not run"),
        ("❌", "infrastructure (port\\_in\\_use)"),
    ]


def test_what_is_waived_is_folded_and_does_not_block() -> None:
    tree = rendered(markdown.to_markdown(a_document(HEALTHY, FELL_BACK, waivers=(WAIVER,))))

    assert "Waived: 1 cell" in tree.outline
    assert "What blocks" not in tree.outline


def test_a_waiver_is_told_with_its_owner_and_what_is_wrong_with_it_stands_out() -> None:
    ended = replace(WAIVER, cells="*/gone/*", expires=date(2026, 12, 1), link="https://x.example/1")
    valid = replace(WAIVER, expires=date(2026, 12, 31))
    text = markdown.to_markdown(a_document(HEALTHY, FELL_BACK, waivers=(valid, ended)))

    assert "- waived by me until 2026-12-31: known\n" in text
    assert "### Waivers to look at\n\n- ⚠️ **expired**: `*/gone/*`, of me: ended on " in text
    assert "\n  - known ([link](<https://x.example/1>))\n" in text


def test_what_is_tolerated_is_folded_and_drift_is_not() -> None:
    report = a_document(HEALTHY, FELL_BACK)
    kinds = (ConcernKind.DRIFT, ConcernKind.BROKEN_BEFORE)
    tolerated = [
        replace(report.gate.concerns[0], kind=kind, effect="tolerated", since="0.33")
        for kind in kinds
    ]
    report = replace(report, gate=replace(report.gate, concerns=tuple(tolerated)))
    text = markdown.to_markdown(report)

    assert rendered(text).outline[:2] == ["Drift: 1 cell", "Tolerated: 1 cell"]
    assert "**broken before (silent\\_fallback)** in 1 cell of `v0_32`, since 0.33: " in text


def test_what_is_fixed_since_the_baseline_is_told_and_what_regressed_comes_first() -> None:
    cells = [a_cell(f"cpu/llama/{name}/v0_32", engine_args={"m": name}) for name in "ab"]
    well, ill = HEALTHY[1], a_failed_report("broken")

    def side(name: str, *reports: ProbeReport) -> Side:
        records = [recorded(cell, report) for cell, report in zip(cells, reports, strict=True)]
        return Side(name=name, matrix=matrix.build(cells, records))

    now = side("now", well, ill)
    compared = compare(side("2026-12-01-demo", ill, well), now)
    decision = decide(now.matrix, Gate(), today=date(2026, 12, 2), comparison=compared)
    text = markdown.to_markdown(document.build("runs/now", "demo", now.matrix, decision))

    assert "\nSince `2026-12-01-demo`: 1 regression, internal\\_error; 1 fixed" in text
    assert rendered(text).outline[:2] == ["What blocks", "Fixed: 1 cell"]
    assert "- llama / a: cpu\n  - failed (internal\\_error) → passed\n" in text


@pytest.mark.parametrize("form", [markdown.to_markdown, markdown.to_comment, markdown.to_summary])
def test_text_of_engines_stays_text(form: object) -> None:
    cells = (a_cell("cpu/llama/bad/v0_32"), a_cell("cpu/llama/worse/v0_32"))
    report = a_document(*((cell, a_failed_report(HOSTILE)) for cell in cells))
    tree = rendered(form(report))  # type: ignore[operator]

    assert {*tree.tags} <= OURS
    assert tree.tags["details"] == tree.tags["table"] == 1
    assert all(len(widths) == 1 for widths in tree.widths)
    assert not re.search(r"@\w|#\d|GH-\d|https://|:tada:", tree.prose)


@pytest.mark.parametrize("count", [100, 400, 4000])
def test_a_comment_keeps_to_the_limit_and_says_what_is_missing_and_where_it_is(count: int) -> None:
    report = many(count)
    text = markdown.to_comment(report)
    tree = rendered(text)

    assert len(text) + text.count("\n") <= 65_536
    assert tree.tags["details"] <= 4
    assert all(len(widths) == 1 for widths in tree.widths)
    shown = text.count("\n| llama | b")
    missing = f"{count - shown:,} cells"
    assert (f"Left out for want of room: {missing}" in tree.prose) is (count == 400)
    assert ("All of it is in" in tree.prose) is (count != 100)


def test_every_reason_to_block_gets_a_line_before_any_gets_an_excerpt() -> None:
    text = markdown.to_comment(many(300))

    assert text.count("\n- ❌") == 300


def test_a_matrix_that_is_too_large_for_a_comment_is_whole_in_markdown_and_in_a_summary() -> None:
    report = many(400)

    for form in (markdown.to_markdown, markdown.to_summary):
        assert "Left out" not in form(report)
        assert form(report).count("\n| llama | b") == 400


def test_a_summary_keeps_to_its_limit_in_bytes() -> None:
    text = markdown.to_summary(many(9000))

    assert len(text.encode()) <= 1 << 20
    assert "Left out for want of room" in text


def test_a_comment_has_a_mark_by_which_the_next_one_replaces_it_and_a_link_to_its_files() -> None:
    text = markdown.to_comment(a_document(HEALTHY), page="https://ci.example/7")

    assert text.startswith("<!-- vllm-matrix demo -->\n**ships: 1 of 1 cells passed** ")
    assert "run [`2026-12-02-demo`](<https://ci.example/7>)" in text
