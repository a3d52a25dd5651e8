"""The page of a run, as text: what is in it, and what may run of it."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from orchestrator.asked.config import Asked, Expectation
from orchestrator.asked.policies import Gate
from orchestrator.concluded import matrix
from orchestrator.concluded.comparison import Side, compare
from orchestrator.concluded.gate import decide
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from orchestrator.reports import document
from orchestrator.reports.page import bundle, content, scripts
from orchestrator.reports.page.packed import Pool
from tests.builders import a_build, a_cell, a_failed_report, a_report, an_attempt

SCRIPTS = bundle.ASSETS / "scripts"
HARM = "</script><!-- <img src=x onerror=alert(1)> &lt;"


def opened(packed: dict[str, Any], ref: int) -> Any:
    """As the page opens it."""
    value = packed["values"][ref]
    if not isinstance(value, list | tuple):
        return value
    if value and value[0] < 0:
        keys = packed["shapes"][-value[0] - 1]
        return dict(zip(keys, (opened(packed, part) for part in value[1:]), strict=True))
    return [opened(packed, part) for part in value]


def a_page_of(*messages: str, log: content.Log = lambda _: ()) -> dict[str, Any]:
    """Of cells that failed with these messages."""
    cells = [a_cell(f"cpu/llama/bad{number}/v0_32") for number in range(len(messages))]
    records = []
    for cell, message in zip(cells, messages, strict=True):
        attempt = an_attempt(a_failed_report(message, type_="OSError"), cell_id=cell.id)
        judgement = judge(cell, a_build(), attempt)
        records.append(
            Record(cell_id=cell.id, build=a_build(), attempt=attempt, judgement=judgement)
        )
    result = matrix.build(cells, records)
    report = document.build("r", "s", result, decide(result, Gate(), today=date(2026, 12, 3)))
    packed: dict[str, Any] = json.loads(content.to_json(report, result, ["suite=s"], log))
    return packed


@pytest.mark.parametrize(
    "value",
    [
        "text",
        None,
        0.25,
        [],
        {},
        [[], [1, True, "1", 1.5, None]],
        {"a": [{"a": 1}, {"a": 2, "b": "text"}], "b": {}},
    ],
)
def test_what_is_packed_is_opened_again(value: Any) -> None:
    pool = Pool()
    pool.put(["something", "before"])
    ref = pool.put(value)

    again = opened({"values": pool.values, "shapes": pool.shapes}, ref)
    assert json.dumps(again) == json.dumps(value)


def test_what_comes_again_is_packed_once() -> None:
    pool = Pool()
    first = pool.put({"lines": ["a long line", "another"]})
    packed = len(pool.values)

    assert pool.put({"lines": ["a long line", "another"]}) == first
    assert len(pool.values) == packed


def test_parts_are_packed_before_what_they_are_part_of() -> None:
    """The search of the page goes through them once, in order."""
    packed = a_page_of("it broke", "it broke in another way")

    for place, value in enumerate(packed["values"]):
        if isinstance(value, list):
            assert all(part < place for part in value)


def test_a_cell_has_the_words_that_explain_has_for_it() -> None:
    packed = a_page_of("Address already in use")
    shown, told = (opened(packed, packed[part][0]) for part in ("cells", "details"))

    assert (shown["sign"], shown["verdict"], shown["category"]) == (
        "failed",
        "failed",
        "port_in_use",
    )
    assert told["failure"]["cause"] == "OSError: Address already in use"
    assert told["blocks"]["build"] == ["v0_32: release 0.32.0, d1"]
    assert "failure" not in told["blocks"]


@pytest.mark.parametrize(
    ("expect", "message", "sign"),
    [
        (Expectation(), "", "passed"),
        (
            Expectation(outcome=("refused",)),
            "Unknown attention backend: 'x'. Valid options are: A",
            "as-expected",
        ),
        (Expectation(outcome=("refused",)), "", "failed"),
    ],
)
def test_each_kind_of_cell_has_a_sign(expect: Expectation, message: str, sign: str) -> None:
    cell = a_cell(target=Asked(attention_backend="CPU_ATTN"), expect=expect)
    attempt = an_attempt(a_failed_report(message) if message else a_report())
    record = Record(
        cell_id=cell.id,
        build=a_build(),
        attempt=attempt,
        judgement=judge(cell, a_build(), attempt),
    )
    lost = replace(cell, id="cpu/llama/lost/v0_32")
    result = matrix.build([cell, lost], [record])
    report = document.build("r", "s", result, decide(result, Gate(), today=date(2026, 12, 3)))
    packed = json.loads(content.to_json(report, result, [], lambda _: ()))

    signs = [opened(packed, ref)["sign"] for ref in packed["cells"]]
    assert signs == [sign, "not-run"]


def test_the_logs_of_all_cells_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "LOGS_BYTES", 250)
    packed = a_page_of("a", "b", "c", log=lambda _: ["x" * 50, "y" * 50])

    kept = [len(opened(packed, ref)["log_lines"]) for ref in packed["details"]]
    assert kept == [2, 2, 0]


def test_what_became_of_cells_since_the_baseline_comes_before_builds() -> None:
    cell, other = a_cell("cpu/llama/auto/old"), a_cell("cpu/llama/auto/new")
    build = a_build()
    good, bad = (
        an_attempt(report, cell_id=cell.id) for report in (a_report(), a_failed_report("it broke"))
    )
    then, now = (
        matrix.build(
            cells,
            [
                Record(
                    cell_id=each.id,
                    build=build,
                    attempt=attempt,
                    judgement=judge(each, build, attempt),
                )
                for each in cells
            ],
        )
        for cells, attempt in (([cell], good), ([cell, other], bad))
    )
    compared = compare(Side(name="before", matrix=then), Side(name="now", matrix=now))
    decision = decide(now, Gate(), today=date(2026, 12, 3), comparison=compared)
    report = document.build("r", "s", now, decision)
    packed = json.loads(content.to_json(report, now, [], lambda _: ()))
    first, second = (opened(packed, ref) for ref in packed["differences"])

    assert (first["before"], first["after"], first["build"]) == ("before", "now", None)
    assert {each["kind"] for each in first["changed"]} == {"regressed"}
    assert first["changed"][0]["lines"][0] == "passed → failed (internal_error)"
    assert (second["before"], second["after"], second["build"]) == ("old", "new", "new")


def test_no_text_of_a_run_ends_the_script_that_holds_it() -> None:
    packed = json.dumps(a_page_of(HARM))
    html = bundle.page(title=HARM, run=HARM, sentence=f"blocked: {HARM}", ships=False, data=packed)
    [data] = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', html)

    assert zlib.decompress(base64.b64decode(data)).decode() == packed
    assert HARM not in html
    assert re.findall(r"<(?:img|!--)", html) == []
    assert html.count("<script") == 2


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    html = bundle.page(title="t", run="r", sentence="ships: all", ships=True, data="{}")
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    [script] = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)

    assert policy.startswith("default-src 'none'; ")
    assert f"script-src '{sha256(script)}'" in policy
    assert f"style-src '{sha256(style)}'" in policy
    assert "unsafe" not in policy
    assert re.findall(r"(?:https?:)?//[a-z]", style) == []


def sha256(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def test_every_module_is_used_and_uses_what_it_imports() -> None:
    joined = scripts.joined(SCRIPTS, "main")
    for file in SCRIPTS.glob("*.js"):
        text = file.read_text()
        assert f"const {file.stem}_js = " in joined
        for names, module in re.findall(
            r'^import \{([^}]*)\} from "\./(\w+)\.js";', text, re.MULTILINE
        ):
            for name in filter(None, map(str.strip, names.split(","))):
                exported, _, used = name.partition(" as ")
                offered = (SCRIPTS / f"{module}.js").read_text()
                assert re.search(
                    rf"^export (?:async )?(?:function|const) {exported}\b", offered, re.MULTILINE
                )
                assert len(re.findall(rf"\b{used or name}\b", text)) > 1, (file.name, name)


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')

    with pytest.raises(ValueError, match="a → b → a"):
        scripts.joined(tmp_path, "a")


def test_a_form_of_export_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("export default 1;\n")

    with pytest.raises(ValueError, match=re.escape("a.js has a form of import or export")):
        scripts.joined(tmp_path, "a")
