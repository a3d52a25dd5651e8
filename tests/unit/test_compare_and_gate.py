"""`compare` and `gate`, from words to exit codes, on runs that lie on disk."""

import json
from pathlib import Path

import jsonschema
import pytest
from inline_snapshot import snapshot

from jobs.contract.seen import ProbeReport
from orchestrator.__main__ import answer
from orchestrator.asked.cells import Cell
from orchestrator.asked.policies import Gate, Waiver
from tests.builders import (
    H100,
    MI300X,
    a_cell,
    a_failed_report,
    a_report,
    an_emulated_cell,
    groups,
)
from tests.unit.kept_runs import a_run

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"

FINE = a_report(target=groups("FLASH_ATTN"))
OTHERWISE = a_report(target=groups("TRITON_ATTN"))
BROKEN = a_failed_report("No KV cache layout satisfies it")

RELEASE = Gate(name="release", tolerates=("broken before", "drift", "no baseline"))

WAIVERS = """
waivers:
  - {cells: "mi300x/*", category: kv_layout_conflict, reason: it is known, owner: rocm}
"""


def of_card(card: str, model: str) -> Cell:
    hardware = H100 if card == "h100" else MI300X
    return a_cell(f"{card}/{model}/auto/v0_32", hardware=hardware, engine_args={"m": model})


CELLS = [of_card(card, model) for model in ("llama", "gemma", "gpt") for card in ("h100", "mi300x")]
BEFORE: list[ProbeReport | None] = [FINE, FINE, FINE, FINE, BROKEN, BROKEN]
AFTER: list[ProbeReport | None] = [FINE, BROKEN, OTHERWISE, BROKEN, FINE, BROKEN]


@pytest.fixture(autouse=True)
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gone = of_card("h100", "old")
    then = [*zip(CELLS, BEFORE, strict=True), (gone, FINE)]
    new = of_card("h100", "new")
    now = [*zip(CELLS, AFTER, strict=True), (new, FINE)]
    a_run("2026-12-01-demo", then, version="0.31.0", shipped=True)
    a_run("2026-12-02-demo", now, gate=RELEASE)


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert answer(words) == code
    return capsys.readouterr().out


def error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert answer(words) == 2
    return " ".join(capsys.readouterr().err.split())


COMPARE = ("compare", "2026-12-01-demo", "2026-12-02-demo")


def test_a_comparison_begins_with_one_sentence_and_the_worst(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert out(capsys, *COMPARE) == snapshot("""\
2 regressions on gfx942, all kv_layout_conflict, since 0.32.0; 1 broken before, 1 no baseline, 1 drift, 1 fixed, 1 unchanged, 1 cell gone
2026-12-01-demo → 2026-12-02-demo

regressed: 2
  llama / auto: mi300x
  gemma / auto: mi300x
      passed → failed (kv_layout_conflict)
      expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it

broken before: 1
  gpt / auto: mi300x
      expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it

no baseline: 1
  new / auto: h100
      passed
      no cell of 2026-12-01-demo asks this

drift: 1
  gemma / auto: h100
      target attention: FLASH_ATTN (FLASH_ATTN) → TRITON_ATTN (TRITON_ATTN)

fixed: 1
  gpt / auto: h100
      failed (kv_layout_conflict) → passed
      it was: expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it

gone: 1
  h100/old/auto/v0_32
""")


def test_a_comparison_in_markdown_folds_what_can_wait(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, *COMPARE, "--format", "md") == snapshot("""\
**2 regressions on gfx942, all kv\\_layout\\_conflict, since 0.32.0; 1 broken before, 1 no baseline, 1 drift, 1 fixed, 1 unchanged, 1 cell gone**

2026-12-01-demo → 2026-12-02-demo

### regressed: 2

- llama / auto: mi300x; gemma / auto: mi300x
  - passed → failed (kv\\_layout\\_conflict)
  - expected that it runs, but kv\\_layout\\_conflict in load: ValueError: No KV cache layout satisfies it

<details>
<summary>broken before: 1</summary>

- gpt / auto: mi300x
  - expected that it runs, but kv\\_layout\\_conflict in load: ValueError: No KV cache layout satisfies it

</details>

<details>
<summary>no baseline: 1</summary>

- new / auto: h100
  - passed
  - no cell of 2026-12-01-demo asks this

</details>

<details>
<summary>drift: 1</summary>

- gemma / auto: h100
  - target attention: FLASH\\_ATTN (FLASH\\_ATTN) → TRITON\\_ATTN (TRITON\\_ATTN)

</details>

<details>
<summary>fixed: 1</summary>

- gpt / auto: h100
  - failed (kv\\_layout\\_conflict) → passed
  - it was: expected that it runs, but kv\\_layout\\_conflict in load: ValueError: No KV cache layout satisfies it

</details>

<details>
<summary>gone: 1</summary>

- h100/old/auto/v0\\_32

</details>
""")


def test_a_comparison_in_json_keeps_to_the_published_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = json.loads(out(capsys, *COMPARE, "--format", "json"))

    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(found, {"$ref": "#/$defs/ComparisonRow", "$defs": schema["$defs"]})
    assert found["counts"] == {
        "regressed": 2,
        "broken before": 1,
        "no baseline": 1,
        "drift": 1,
        "fixed": 1,
        "unchanged": 1,
    }
    assert [cell["cell_id"] for cell in found["cells"]] == [
        *(cell.id for cell in CELLS),
        "h100/new/auto/v0_32",
    ]
    assert found["gone"] == ["h100/old/auto/v0_32"]


def test_a_report_of_a_run_with_a_baseline_has_the_same_comparison(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_baseline = Gate(name="release", baseline="previous")
    a_run("2026-12-03-demo", [*zip(CELLS, AFTER, strict=True)], gate=with_baseline)

    compared = json.loads(
        out(capsys, "compare", "2026-12-02-demo", "2026-12-03-demo", "--format", "json")
    )
    report = json.loads(out(capsys, "report", "latest", "--format", "json"))

    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert report["comparison"] == compared
    assert compared["counts"] == {"broken before": 3, "unchanged": 3}
    assert compared["sentence"] in out(capsys, "report", "latest").replace("\n", " ")


def test_runs_that_have_nothing_in_common_are_not_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a_run("2026-12-03-other", [(an_emulated_cell(), FINE)])

    said = error(capsys, "compare", "2026-12-01-demo", "2026-12-03-other")

    assert "2026-12-03-other asks nothing that 2026-12-01-demo does" in said


# The gate


GATE = ("gate", "2026-12-02-demo")
AGAINST = (*GATE, "--baseline", "2026-12-01-demo")


def test_without_a_baseline_every_failure_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, *GATE, code=1) == snapshot("""\
blocked: 3 failed on gfx942 (kv_layout_conflict) of 7 cells
  mi300x/llama/auto/v0_32: failed (kv_layout_conflict): expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it
  mi300x/gemma/auto/v0_32: failed (kv_layout_conflict): expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it
  mi300x/gpt/auto/v0_32: failed (kv_layout_conflict): expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it
""")


def test_with_a_baseline_only_what_is_worse_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, *AGAINST, code=1) == snapshot("""\
blocked: 2 regressions on gfx942, all kv_layout_conflict, since 0.32.0; 1 cell gone
  mi300x/llama/auto/v0_32: regressed (kv_layout_conflict): expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it
  mi300x/gemma/auto/v0_32: regressed (kv_layout_conflict): expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it
  h100/old/auto/v0_32: gone: 2026-12-01-demo has it, and nobody asks it of 2026-12-02-demo
  tolerated: mi300x/gpt/auto/v0_32: broken before (kv_layout_conflict): expected that it runs, but kv_layout_conflict in load: ValueError: No KV cache layout satisfies it
  tolerated: h100/gemma/auto/v0_32: drift: target attention: FLASH_ATTN (FLASH_ATTN) → TRITON_ATTN (TRITON_ATTN)
  tolerated: h100/new/auto/v0_32: no baseline: no cell of 2026-12-01-demo asks this
""")


def test_another_policy_decides_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    survey = out(capsys, *AGAINST, "--policy", "survey")

    assert survey.splitlines()[0] == snapshot(
        "ships: 4 of 7 cells passed, 1 fixed; tolerated: 2 regressions, 1 broken before, 1 cell gone, 1 drift, 1 no baseline"
    )


def test_with_a_waiver_it_ships(capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.yaml").write_text(WAIVERS)
    shipped = out(capsys, *AGAINST, "--policy", "nightly", "--waivers", "known.yaml")

    assert shipped == snapshot("""\
ships: 4 of 7 cells passed, 3 waived, 1 fixed; tolerated: 1 cell gone, 1 drift, 1 no baseline
  waived: mi300x/llama/auto/v0_32: regressed (kv_layout_conflict): it is known (rocm)
  waived: mi300x/gemma/auto/v0_32: regressed (kv_layout_conflict): it is known (rocm)
  waived: mi300x/gpt/auto/v0_32: broken before (kv_layout_conflict): it is known (rocm)
  tolerated: h100/old/auto/v0_32: gone: 2026-12-01-demo has it, and nobody asks it of 2026-12-02-demo
  tolerated: h100/gemma/auto/v0_32: drift: target attention: FLASH_ATTN (FLASH_ATTN) → TRITON_ATTN (TRITON_ATTN)
  tolerated: h100/new/auto/v0_32: no baseline: no cell of 2026-12-01-demo asks this
""")


def test_the_waivers_of_the_run_hold_whatever_the_policy_unless_others_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiver = Waiver(cells="*", category="kv_layout_conflict", reason="known", owner="me")
    gate = Gate(waivers=(waiver,))
    a_run("2026-12-04-demo", [(CELLS[0], BROKEN)], gate=gate)
    Path("none.yaml").write_text("waivers: []")

    assert "1 waived" in out(capsys, "gate", "latest", "--policy", "strict")
    assert "blocked" in out(capsys, "gate", "latest", "--waivers", "none.yaml", code=1)


def test_one_build_of_a_run_can_be_held_against_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = of_card("h100", "llama")
    new = a_cell(old.id.replace("v0_32", "v0_33"), hardware=H100, engine_args={"m": "llama"})
    a_run("2026-12-05-both", [(old, FINE), (new, BROKEN)], gate=RELEASE)

    said = out(capsys, "gate", "latest:v0_33", "--baseline", "latest:v0_32", code=1)
    back = out(capsys, "gate", "latest:v0_32", "--baseline", "latest:v0_33")

    assert said.startswith("blocked: 1 regression, kv_layout_conflict\n")
    assert back.startswith("ships: 1 of 1 cells passed, 1 fixed\n")


def test_a_baseline_that_is_gone_since_blocks_and_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a_run("2026-12-06-demo", [(CELLS[0], FINE)], gate=Gate(baseline="2026-11-30-demo"))

    said = out(capsys, "gate", "latest", code=1)

    assert said.startswith("blocked: the baseline 2026-11-30-demo is of no use: there is no run")


def test_everything_that_is_wrong_with_the_words_is_said_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("known.yaml").write_text("waivers: [{cells: x}]")

    said = error(
        capsys, *GATE, "--policy", "nightlie", "--waivers", "known.yaml", "--baseline", "nope"
    )

    assert 'Did you mean "nightly"?' in said
    assert "known.yaml: waivers.0.reason: is missing" in said
    assert "--baseline: there is no run nope" in said


def test_a_run_is_no_baseline_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    said = error(capsys, *GATE, "--baseline", "latest")

    assert "2026-12-02-demo is what is to be compared with it" in said
