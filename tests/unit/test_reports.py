"""The forms of report, from one small matrix."""

import io
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import jsonschema
from inline_snapshot import snapshot
from rich.console import Console

from jobs.contract.attempts import Placement
from jobs.contract.builds import Patch
from jobs.contract.seen import MoeGroup, PhaseTime, RankSeen, Rejection
from jobs.contract.terms import Phase
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, Expectation
from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded import matrix
from orchestrator.concluded.gate import decide
from orchestrator.concluded.judge import judge, not_run
from orchestrator.concluded.record import Record
from orchestrator.reports import document, explain, junit, markdown, terminal
from orchestrator.reports.explain import Beside
from tests.builders import (
    EAGLE3,
    a_build,
    a_cell,
    a_failed_report,
    a_report,
    an_attempt,
    groups,
)

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"

TRITON = Asked(attention_backend="TRITON_ATTN")
HEALTHY = a_report(
    draft=groups("CPU_ATTN"),
    phases=(PhaseTime(phase=Phase.LOAD, seconds=0.25),),
    rejections=(Rejection(backend="FLEX_ATTENTION", reasons=("MLA not supported",), said_by="x"),),
)
REFUSED = a_failed_report("Unknown attention backend: '<script>|`x`'. Valid options are: A\n\nB")

DRAFT = a_cell("cpu/eagle3/draft_triton/v0_32", draft=TRITON, speculative=EAGLE3)
UNKNOWN = a_cell("cpu/llama/unknown/v0_32", target=TRITON, expect=Expectation(outcome=("refused",)))
LOST = a_cell("cpu/llama/auto/v0_32")
WAIVER = Waiver(cells="*draft*", category="silent_fallback", reason="known", owner="me")


def recorded(cell: Cell, report: object) -> Record:
    attempt = an_attempt(report, cell_id=cell.id)  # type: ignore[arg-type]
    return Record(
        cell_id=cell.id,
        at="2026-12-02T04:05:00+00:00",
        build=a_build(),
        attempt=attempt,
        judgement=judge(cell, a_build(), attempt),
    )


def a_document(*waivers: Waiver) -> document.Document:
    records = [recorded(DRAFT, HEALTHY), recorded(UNKNOWN, REFUSED)]
    result = matrix.build([DRAFT, UNKNOWN, LOST], records)
    decision = decide(result, Gate(waivers=waivers), today=date(2026, 12, 2))
    return document.build("runs/x", "demo", result, decision)


def test_the_json_report_keeps_to_its_published_schema() -> None:
    report = json.loads(document.to_json(a_document(WAIVER)))

    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert report["schema_version"] == 1


def test_the_published_schema_is_that_of_the_code() -> None:
    """After a change: `python -m tests.unit.test_reports` writes it anew."""
    assert json.loads(SCHEMA.read_text()) == document.schema()


def test_a_cell_in_json_says_what_was_asked_got_and_concluded() -> None:
    [cell, *_] = json.loads(document.to_json(a_document()))["cells"]

    assert cell["requests"]["draft.attention_backend"] == snapshot(
        {"asked": "TRITON_ATTN", "got": "CPU_ATTN", "verdict": "dropped"}
    )
    assert (cell["verdict"], cell["category"]) == ("failed", "silent_fallback")
    assert (cell["kv_layout"], cell["runner"]) == ("LBNHC", "V1")
    assert cell["phases"] == {"load": 0.25}
    assert cell["draft"][0]["backend"] == "CPU_ATTN"
    assert cell["build"]["digest"] == "d1"


def test_a_cell_without_a_record_is_in_the_report_as_not_run() -> None:
    *_, cell = json.loads(document.to_json(a_document()))["cells"]

    assert (cell["id"], cell["verdict"]) == (LOST.id, "not run")
    assert cell["reasons"] == ["there is no record of it"]


def test_the_screen_shows_the_matrix_then_the_reasons_then_the_gate() -> None:
    screen = io.StringIO()
    Console(width=140, file=screen).print(terminal.render(a_document(WAIVER)))

    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert "\n".join(lines) == snapshot("""\
cpu · v0_32 · vLLM 0.32.0
 model / backend        verdict           target got          draft got                       layout, runner    s
 eagle3 / draft_triton  failed (waived)   CPU_ATTN            TRITON_ATTN → CPU_ATTN dropped  LBNHC V1        3.0
 llama / unknown        passed (refused)  TRITON_ATTN unseen  -                               LBNHC           3.0
 llama / auto           not run           -                   -                               -                 -

cpu/eagle3/draft_triton/v0_32  failed (waived)  silent_fallback
    draft.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN
cpu/llama/unknown/v0_32  passed (refused)  config_invalid
    ValueError: Unknown attention backend: '<script>|`x`'. Valid options are: A B
cpu/llama/auto/v0_32  not run
    there is no record of it

gate blocked: 1 not run of 3 cells\
""")


def test_every_form_says_cause_owner_and_next_step_and_shows_where_it_was() -> None:
    cell = a_cell("cpu/llama/bad/v0_32")
    records = [recorded(cell, a_failed_report("Address already in use", type_="OSError"))]
    result = matrix.build([cell], records)
    report = document.build("r", "s", result, decide(result, Gate(), today=date(2026, 12, 2)))
    screen = io.StringIO()
    Console(width=200, file=screen).print(terminal.render(report))

    forms = {
        "terminal": screen.getvalue(),
        "markdown": markdown.to_markdown(report).replace("\\", ""),
        "junit": junit.to_junit(report),
        "explain": explain.to_text(report, report.cells[0], []),
    }

    needed = ("OSError: Address already in use", "cluster", "end it, or leave", "at vllm/x.py:1")
    missing = [(name, part) for name, text in forms.items() for part in needed if part not in text]
    assert missing == []


def test_explain_ends_with_a_command_for_the_cell_alone() -> None:
    report = a_document()
    command = ["suite=demo", "suite.select=[x]", "isolation=cold"]

    assert explain.to_text(report, report.cells[0], command).splitlines()[-1] == snapshot(
        "  vllm-matrix run suite=demo isolation=cold 'suite.select=[\"cpu/eagle3/draft_triton/v0_32\"]' 'suite.exclude=[]' resume=false"
    )


def test_a_command_that_lacks_its_secrets_says_so() -> None:
    report = a_document()

    said = explain.to_text(report, report.cells[0], ["model.llama.env={HF_TOKEN: ***}"])

    assert said.endswith("\n  (for each ***, fill in the secret that you had there)\n")


def test_the_hash_of_a_patch_is_of_the_text_that_was_applied() -> None:
    patch = Patch(name="a.diff", text="as the run kept it, without its secrets")
    cell = replace(LOST, build=replace(LOST.build, patches=(patch,)))
    build = a_build(patches={"a.diff": "of the text"})
    record = Record(cell_id=cell.id, build=build, judgement=not_run("it was stopped"))

    def hashes(*records: Record) -> dict[str, str | None]:
        result = matrix.build([cell], records)
        decision = decide(result, Gate(), today=date(2026, 12, 2))
        return document.build("r", "s", result, decision).cells[0].build.patches

    assert hashes(record) == {"a.diff": "of the text"}
    assert hashes() == {"a.diff": None}


def test_explain_tells_what_each_rank_has() -> None:
    experts = MoeGroup(
        backend="TRITON", experts_class="x.E", quant_method="q", layers=2, local_experts=4
    )
    ranks = tuple(
        RankSeen(rank=n, tensor=n, expert=n, target=groups("A"), target_moe=(experts,), runner="V2")
        for n in range(2)
    )
    result = matrix.build([LOST], [recorded(LOST, replace(HEALTHY, ranks=ranks))])
    decision = decide(result, Gate(), today=date(2026, 12, 2))
    report = document.build("runs/x", "demo", result, decision)
    told = explain.to_text(report, report.cells[0], [])

    assert (
        """
ranks
  0 (TP 0, PP 0, DP 0, EP 0): target 2 layers A, target MoE TRITON of 4 experts, V2
  1 (TP 1, PP 0, DP 0, EP 1): target 2 layers A, target MoE TRITON of 4 experts, V2
"""
        in told
    )


def test_explain_tells_on_which_of_its_nodes_each_rank_is() -> None:
    ranks = tuple(RankSeen(rank=n, tensor=n, node=f"n{n}", target=groups("A")) for n in range(2))
    attempt = an_attempt(replace(HEALTHY, ranks=ranks))
    attempt = replace(attempt, placement=Placement(node="n0", others=("n1",)))
    result = matrix.build([LOST], [replace(recorded(LOST, HEALTHY), attempt=attempt)])
    decision = decide(result, Gate(), today=date(2026, 12, 2))
    report = document.build("runs/x", "demo", result, decision)

    told = explain.to_text(report, report.cells[0], [])

    assert "\n  1 (TP 1, PP 0, DP 0) on n1: target 2 layers A\n" in told
    assert "\n  nodes n0 and n1, warm isolation\n" in told


def test_explain_tells_everything_about_a_cell() -> None:
    report = a_document()

    assert explain.to_text(
        report, report.cells[0], ["suite=demo"], Beside(log=["the log"])
    ) == snapshot("""\
cpu/eagle3/draft_triton/v0_32: failed

asked
  draft.attention_backend TRITON_ATTN

requests
  target.attention_backend: asked nothing, got CPU_ATTN: autoselected
  target.kv_cache_dtype: asked nothing, got auto: autoselected
  draft.attention_backend: asked TRITON_ATTN, got CPU_ATTN: dropped
  draft.kv_cache_dtype: asked nothing, got auto: inherited
  runner: asked nothing, got V1: autoselected
  block_size: asked nothing, got 16: autoselected

target attention
  CPU_ATTN (vllm.CPU_ATTN), 2 layers, KV group 0: block size 16, KV dtype auto, layouts any

draft attention
  CPU_ATTN (vllm.CPU_ATTN), 2 layers, KV group 0: block size 16, KV dtype auto, layouts any

engine
  mode real, check generate, outcome runs
  runner V1, KV layout LBNHC

why
  draft.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN

failure
  silent_fallback, owner vllm
  draft.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN
  next: The engine runs on something else than was asked, and did not say so as an error.

backends not taken
  FLEX_ATTENTION: MLA not supported (x)

phases
  load            0.25 s

placement
  node n1, warm isolation
  3.0 s, attempt 1

build
  v0_32: release 0.32.0, d1

log probe.log
  the log

show it to others
  vllm-matrix reproduce runs/x cpu/eagle3/draft_triton/v0_32: a script that needs no vllm-matrix
  vllm-matrix issue runs/x cpu/eagle3/draft_triton/v0_32: a report for vLLM's people

run it alone
  vllm-matrix run suite=demo 'suite.select=["cpu/eagle3/draft_triton/v0_32"]' 'suite.exclude=[]' resume=false
""")


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(document.schema(), indent=1) + "\n")
