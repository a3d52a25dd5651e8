"""The forms of report of an emulated run that proves something."""

import dataclasses
import io
from collections.abc import Callable
from datetime import date

import pytest
from inline_snapshot import snapshot
from rich.console import Console

from jobs.contract.emulation import Emulated, PackageSet
from jobs.contract.seen import ProbeReport, Rejection, Selection
from orchestrator.asked import cell_requests
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, Proof
from orchestrator.asked.policies import Gate
from orchestrator.concluded import matrix
from orchestrator.concluded.gate import decide
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from orchestrator.reports import document, explain, junit, markdown, terminal
from orchestrator.reports.document import Document
from tests.builders import (
    EAGLE3,
    MI300X,
    a_build,
    a_failed_report,
    an_attempt,
    an_emulated_cell,
    an_emulated_report,
    groups,
)

TRITON = Asked(attention_backend="TRITON_ATTN")
FLEX = Asked(attention_backend="FLEX_ATTENTION")
PROOF = Proof(
    claim="a draft gets what is asked for it",
    before="old",
    after="new",
    attempts=("first",),
    cells="*/draft/*",
)
CARD = an_emulated_cell("mi300x-emulated/llama/draft/new", hardware=MI300X)
EMULATED = Emulated(
    card=cell_requests.card(CARD),
    packages=PackageSet(name="vllm-rocm", installed=("flydsl==1.0",), assumed=("aiter",)),
    stubs=("vllm._C",),
    replaced=("torch.cuda.get_device_name",),
)
SELECTION = Selection(
    asked=None,
    question={"head_size": "128"},
    accepted=("ROCM_ATTN", "TRITON_ATTN"),
    rejected=(Rejection(backend="FLASHMLA", reasons=("MLA only",), said_by="selection"),),
)


def got(draft: str) -> ProbeReport:
    report = an_emulated_report(
        CARD,
        target=groups("ROCM_ATTN"),
        draft=groups(draft),
        runner="V2",
        selections=(SELECTION,),
    )
    return dataclasses.replace(report, emulated=EMULATED)


CONFLICT = a_failed_report("No KV cache layout satisfies every supported set: [['A'], ['B|C']]")


def recorded(question: str, build: str, report: ProbeReport, **asked: Asked) -> tuple[Cell, Record]:
    cell = an_emulated_cell(
        f"mi300x-emulated/llama/{question}/{build}", hardware=MI300X, speculative=EAGLE3, **asked
    )
    attempt = an_attempt(report, cell_id=cell.id)
    provisioned = a_build(build)
    judgement = judge(cell, provisioned, attempt)
    return cell, Record(cell_id=cell.id, build=provisioned, attempt=attempt, judgement=judgement)


def a_document(proof: Proof | None = PROOF) -> Document:
    found = [
        recorded("draft", "old", got("ROCM_ATTN"), draft=TRITON),
        recorded("draft", "new", got("TRITON_ATTN"), draft=TRITON),
        recorded("draft", "first", got("TRITON_ATTN"), draft=TRITON),
        recorded("flex", "old", got("ROCM_ATTN")),
        recorded("flex", "new", got("ROCM_ATTN")),
        recorded("flex", "first", CONFLICT),
    ]
    cells, records = zip(*found, strict=True)
    result = matrix.build(cells, records)
    decision = decide(result, Gate(), today=date(2026, 12, 2), proof=proof)
    return document.build("runs/x", "seed", result, decision)


def test_markdown_begins_with_the_verdict_and_a_table_of_before_and_after() -> None:
    text = markdown.to_markdown(a_document())

    assert text[: text.index("### Cards")] == snapshot("""\
**proven: a draft gets what is asked for it, on 1 of 1 cards**

**ships: 2 of 2 cells passed** (suite `seed`, run `x`)

### Before and after

| card | target asked | draft asked | before: `old` | after: `new` | attempt: `first` |
|---|---|---|---|---|---|
| mi300x-emulated | auto | TRITON\\_ATTN | ❌ TRITON\\_ATTN → ROCM\\_ATTN dropped, LBNHC | ✅ TRITON\\_ATTN honoured, LBNHC | ✅ TRITON\\_ATTN honoured, LBNHC |
| _mi300x-emulated_ | _auto_ | _unset_ | ✅ ROCM\\_ATTN inherited, LBNHC | ✅ ROCM\\_ATTN inherited, LBNHC | ❌ kv\\_layout\\_conflict |

Model: `llama`. _Italic_: not part of the claim. Nothing that passes without the fix fails with it.

### Regressions of other attempts, against the fix

- `mi300x-emulated/llama/flex/first` passes with new, fails here: expected that it runs, but kv\\_layout\\_conflict in load: ValueError: No KV cache layout satisfies every supported set: \\[\\['A'\\], \\['B\\|C'\\]\\]

""")


def test_the_screen_shows_the_same_table_and_names_regressions() -> None:
    screen = io.StringIO()
    Console(width=150, file=screen).print(terminal.render(a_document()))
    text = "\n".join(line.rstrip() for line in screen.getvalue().splitlines())

    assert text[text.index("proven:") :] == snapshot("""\
proven: a draft gets what is asked for it, on 1 of 1 cards
 card             target asked  draft asked  before: old                             after: new                   attempt: first
 mi300x-emulated  auto          TRITON_ATTN  TRITON_ATTN → ROCM_ATTN dropped, LBNHC  TRITON_ATTN honoured, LBNHC  TRITON_ATTN honoured, LBNHC
 mi300x-emulated  auto          unset        ROCM_ATTN inherited, LBNHC              ROCM_ATTN inherited, LBNHC   kv_layout_conflict
in italics: not part of the claim
regressed with another attempt, against the fix: 1
  mi300x-emulated/llama/flex/first  passes with new, fails here: expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout
satisfies every supported set: [['A'], ['B|C']]

6 of 6 cells are emulated: vLLM's own start-up code ran on tensors without storage in a process that believes it has the card; no kernel ran and no
weight was loaded. Package sets: vllm-rocm (flydsl==1.0; assumed: aiter).
gate ships: 2 of 2 cells passed\
""")


@pytest.mark.parametrize("form", [document.to_json, markdown.to_markdown, junit.to_junit])
def test_every_form_says_that_cells_are_emulated(form: Callable[[Document], str]) -> None:
    assert "mi300x-emulated" in form(a_document())


def test_what_was_not_real_is_in_the_document_once() -> None:
    report = a_document()

    assert [*report.emulations.values()] == [EMULATED]
    assert {row.emulated for row in report.cells if row.outcome == "runs"} == {*report.emulations}


def test_explain_shows_the_selectors_table_and_what_was_not_real() -> None:
    report = a_document()
    text = explain.to_text(report, report.cells[0], ["suite=seed"])

    assert "\nemulated: no such card was there, and no kernel ran\n" in text
    assert text[text.index("selector") : text.index("build\n")] == snapshot("""\
selector, question 1
  head_size 128; asked nothing
  accepted: ROCM_ATTN, TRITON_ATTN
  not FLASHMLA: MLA only

placement
  node n1, warm isolation
  3.0 s, attempt 1

""")
    assert text[text.index("not real") : text.index("run it alone")] == snapshot("""\
not real
  the card mi300x: AMD Instinct MI300X, gfx942, 192 GiB, 304 compute units, 64 KiB shared memory
  packages vllm-rocm (flydsl==1.0; assumed: aiter)
  by name only (1):
    vllm._C
  answering from the card's description (1):
    torch.cuda.get_device_name

show it to others
  vllm-matrix reproduce runs/x mi300x-emulated/llama/draft/old: a script that needs no vllm-matrix
  vllm-matrix issue runs/x mi300x-emulated/llama/draft/old: a report for vLLM's people

""")


def test_a_document_without_a_proof_has_none() -> None:
    assert a_document(None).proof is None
