"""Scripts and issues that somebody else is given: whole, safe, and as they should be."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.builds import Patch
from jobs.contract.seen import ProbeReport
from jobs.contract.terms import Check
from orchestrator.__main__ import answer
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked as Wanted
from orchestrator.asked.policies import Gate
from orchestrator.concluded.judge import judge, not_run
from orchestrator.concluded.record import Record
from orchestrator.kept.run_directory import Asked, RunDirectory, claimed
from tests.builders import (
    EAGLE3,
    a_build,
    a_cell,
    a_failed_report,
    a_report,
    an_attempt,
    an_emulated_cell,
    an_emulated_report,
    groups,
)
from tests.unit.fake_vllm import STRICT

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
TRITON = Wanted(attention_backend="TRITON_ATTN")
HOSTILE = "x'\nEND\nrm -rf /\n$(touch hacked) `id` @everyone <!-- --> ``` #123"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_run(cell: Cell, report: ProbeReport | None = None, **build: Any) -> RunDirectory:
    """None: the cell was not run."""
    asked = Asked(suite="demo", command=("suite=demo",), gate=Gate(), cells=(cell,))
    with claimed(Path("runs"), asked, today=date(2026, 12, 2), resume=False) as (run, _):
        if report is None:
            run.records.append(Record(cell_id=cell.id, judgement=not_run("no node fits")))
            return run
        patches = {patch.name: patch.sha256 for patch in cell.build.patches}
        made = a_build(cell.build.name, **{"patches": patches} | build)
        attempt = an_attempt(report, cell_id=cell.id)
        judgement = judge(cell, made, attempt)
        run.records.append(
            Record(cell_id=cell.id, build=made, attempt=attempt, judgement=judgement)
        )
    return run


def written(command: str, cell: Cell) -> str:
    assert answer([command, "latest", cell.id, "-o", "out"]) == 0
    return Path("out").read_text()


def checked(cell: Cell) -> str:
    """The script, which shellcheck has nothing against."""
    text = written("reproduce", cell)
    found = subprocess.run(
        [SHELLCHECK, "--shell=sh", "--norc", "out"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout
    assert Path("out").stat().st_mode & 0o100
    return text


def program(script: str) -> str:
    [found] = re.findall(
        r"^cat >program.py <<'(\w+)'\n(.*?)\n\1$", script, re.DOTALL | re.MULTILINE
    )
    return str(found[1])


def archives(script: str) -> list[dict[str, bytes]]:
    found = re.findall(
        r"^base64 -d <<'END' \| tar [^\n]*\n(.*?)\nEND$", script, re.DOTALL | re.MULTILINE
    )
    return [_unpacked(base64.b64decode(text)) for text in found]


def _unpacked(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def run_program(text: str, raises: str = "") -> subprocess.CompletedProcess[str]:
    """With a vLLM of a few lines, which takes its arguments down."""
    Path("vllm.py").write_text(
        "import json, pathlib, types\n"
        "__version__ = '0'\n"
        "class CPU_ATTN: pass\n"
        "CPU_ATTN.__module__ = 'vllm'\n"
        "class SamplingParams:\n"
        "    def __init__(self, **given): pass\n"
        "class LLM:\n"
        "    def __init__(self, **given):\n"
        "        pathlib.Path('given.json').write_text(json.dumps(given))\n"
        f"        {raises or 'pass'}\n"
        "    def generate(self, prompts, sampling): print('generated')\n"
        "    def collective_rpc(self, ask):\n"
        "        layer = types.SimpleNamespace(get_attn_backend=lambda: CPU_ATTN)\n"
        "        context = {'a': layer, 'b': object()}\n"
        "        compiled = types.SimpleNamespace(static_forward_context=context)\n"
        "        config = types.SimpleNamespace(compilation_config=compiled)\n"
        "        runner = types.SimpleNamespace()\n"
        "        return [ask(types.SimpleNamespace(model_runner=runner, vllm_config=config))]\n"
    )
    Path("program.py").write_text(text)
    command = [sys.executable, "program.py"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


DROPPED = a_cell("cpu/llama/triton_attn/v0_32", target=TRITON, engine_args={"max_model_len": 64})


def test_a_real_cell_s_script_makes_its_vllm_and_asks_it_the_same() -> None:
    a_run(DROPPED, a_report())

    text = checked(DROPPED)

    said = " ".join(text.replace("\n# ", " ").split())
    assert "target.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN" in said
    assert "vllm==0.32.0" in text
    assert "export VLLM_CPU_KVCACHE_SPACE=1" in text
    ran = run_program(program(text))
    assert json.loads(Path("given.json").read_text()) == {
        "model": "models/llama",
        "max_model_len": 64,
        "attention_backend": "TRITON_ATTN",
    }
    assert "asked: {'target.attention_backend': 'TRITON_ATTN'}" in ran.stdout
    assert "target attention: vllm.CPU_ATTN" in ran.stdout
    assert "the same as vllm-matrix saw" in ran.stdout
    assert "generated" in ran.stdout
    assert ran.returncode == 0


def test_the_program_says_when_it_gets_something_else() -> None:
    a_run(DROPPED, a_report(target=groups("OTHER")))

    ran = run_program(program(checked(DROPPED)))

    assert "vllm-matrix saw: ['target attention: vllm.OTHER']" in ran.stdout
    assert ran.returncode == 1


@pytest.mark.parametrize(
    ("raises", "code"),
    [
        ("raise RuntimeError('outer') from ValueError('no layout')", 0),
        ("raise ValueError('another')", 1),
        ("pass", 1),
    ],
)
def test_the_program_of_a_failure_looks_for_the_same_exception(raises: str, code: int) -> None:
    cell = replace(DROPPED, check=Check.INIT)
    a_run(cell, a_failed_report("no layout", type_="builtins.ValueError"))

    ran = run_program(program(checked(cell)), raises)

    assert ran.returncode == code
    assert "generated" not in ran.stdout


def test_a_draft_and_a_model_of_one_s_own_are_asked_as_they_were() -> None:
    cell = a_cell("cpu/eagle3/triton/v0_32", speculative=EAGLE3, draft=TRITON)
    cell = replace(cell, model=replace(cell.model, path="org/model", devices=2))
    a_run(cell, a_report(draft=groups("CPU_ATTN")))

    text = checked(cell)
    run_program(program(text))

    assert json.loads(Path("given.json").read_text()) == {
        "model": "org/model",
        "tensor_parallel_size": 2,
        "speculative_config": {
            "method": "eagle3",
            "model": "models/eagle3",
            "num_speculative_tokens": 2,
            "attention_backend": "TRITON_ATTN",
        },
    }
    assert "cat >models/eagle3/config.json" in text
    assert "VLLM_ALLOW_INSECURE_SERIALIZATION" in text


def test_patches_go_over_links_to_a_vllm_that_stays_as_it_is() -> None:
    cell = replace(DROPPED, build=replace(DROPPED.build, patches=(Patch(name="a", text=STRICT),)))
    a_run(cell, a_report())

    text = checked(cell)

    assert STRICT in text
    assert "for file in vllm/__init__.py vllm/platforms/cpu.py; do" in text
    assert "git apply -p1 --include='vllm/*' --whitespace=nowarn --reverse --check" in text


def a_checkout() -> tuple[Path, dict[str, str]]:
    root = Path("checkout").absolute()
    (root / "vllm").mkdir(parents=True)
    for name, content in {"__init__.py": b"", "new.py": b"new\n"}.items():
        (root / "vllm" / name).write_bytes(content)
    return root, {"vllm/new.py": hashlib.sha256(b"new\n").hexdigest()}


def test_the_files_of_a_checkout_come_along() -> None:
    root, sources = a_checkout()
    cell = replace(DROPPED, build=replace(DROPPED.build, checkout=str(root)))
    a_run(cell, a_report(), sources=sources)

    assert archives(checked(cell)) == [{"vllm/__init__.py": b"", "vllm/new.py": b"new\n"}]


def test_a_checkout_that_has_changed_since_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    root, sources = a_checkout()
    (root / "vllm/new.py").write_text("newer")
    cell = replace(DROPPED, build=replace(DROPPED.build, checkout=str(root)))
    a_run(cell, a_report(), sources=sources)

    assert answer(["reproduce", "latest", cell.id]) == 2

    said = " ".join(capsys.readouterr().err.split())
    assert "the files of build v0_32 are no longer as they were: - vllm/new.py with SHA-256" in said


def test_an_emulated_cell_s_script_carries_the_emulation_and_says_so() -> None:
    cell = an_emulated_cell("h100-emulated/eagle3/triton/v0_32", speculative=EAGLE3, draft=TRITON)
    report = an_emulated_report(cell, draft=groups("A"))
    a_run(cell, report)

    text = checked(cell)

    assert "It needs no NVIDIA H100 80GB HBM3, and does not show what one does" in text
    [files] = archives(text)
    assert {"jobs/node/alone.py", "jobs/probe/cell.py", "jobs/models/eagle3/config.json"} <= {
        *files
    }
    assert not [path for path in files if "orchestrator" in path or path.endswith(".pyc")]
    [found] = re.findall(r"^cat >cell.json <<'END'\n(.*?)\nEND$", text, re.DOTALL | re.MULTILINE)
    asked = json.loads(found)
    assert asked["seen"] == [
        "target: CPU_ATTN (vllm.CPU_ATTN), 2 layers",
        "draft: A (vllm.A), 2 layers",
        "runner: V1",
        "kv_layout: LBNHC",
    ]
    assert asked["probe"]["card"]["arch"] == "sm_90"


def test_the_code_that_a_script_carries_runs_without_ours_and_says_what_is_wrong(
    tmp_path: Path,
) -> None:
    cell = an_emulated_cell("h100-emulated/llama/auto/v0_32")
    cell = replace(cell, build=replace(cell.build, release=None, wheel="/no/such.whl"))
    a_run(cell, an_emulated_report(cell))
    checked(cell)

    ran = subprocess.run(
        ["sh", "out", str(tmp_path / "there")],
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
        | {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "it can't be tried here: build v0_32" in ran.stdout, ran.stderr
    assert "/no/such.whl" in ran.stdout
    assert ran.returncode == 2


def test_no_secret_gets_into_a_script_or_an_issue(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2hunter2"
    monkeypatch.setenv("MY_TOKEN", secret)
    cell = a_cell("cpu/llama/auto/v0_32", env={"HF_TOKEN": secret, "PLAIN": "shown"})
    cell = replace(cell, secrets=("MY_TOKEN",))
    a_run(cell, a_failed_report(f"login with {secret} failed"))

    text = checked(cell)
    issue = written("issue", cell)

    assert secret not in text + issue
    assert '": "${HF_TOKEN:?' not in text
    assert ': "${HF_TOKEN:?is a secret' in text
    assert "export PLAIN=shown" in text


def test_what_engines_say_stays_text() -> None:
    cell = replace(DROPPED, model=replace(DROPPED.model, path=HOSTILE))
    a_run(cell, a_failed_report(HOSTILE, type_="builtins.ValueError"))

    text = checked(cell)
    ran = run_program(program(text), f"raise ValueError({HOSTILE!r})")
    issue = written("issue", cell)

    assert json.loads(Path("given.json").read_text())["model"] == HOSTILE
    assert ran.returncode == 0
    assert not Path("hacked").exists()
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", issue, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"@\w", outside)
    assert not re.search(r"(?<!\\)<(?!/?(details|summary|span)>)", outside)


def test_a_cell_that_was_never_tried_has_nothing_to_reproduce(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a_run(DROPPED)

    for command in ("reproduce", "issue"):
        assert answer([command, "latest", DROPPED.id]) == 2
        assert "was never tried" in " ".join(capsys.readouterr().err.split())


def test_of_a_cell_that_passed_there_is_no_issue(capsys: pytest.CaptureFixture[str]) -> None:
    a_run(DROPPED, a_report(target=groups("TRITON_ATTN")))

    assert answer(["issue", "latest", DROPPED.id]) == 2
    assert "passed, so there is nothing to tell" in " ".join(capsys.readouterr().err.split())


def test_an_issue_has_what_vllm_s_people_ask_for() -> None:
    a_run(DROPPED, a_report(versions={"vllm": "0.32.0", "torch": "2.13.0"}))

    issue = written("issue", DROPPED)

    title = "[Bug]: attention backend TRITON_ATTN is ignored, CPU_ATTN is used (cpu, vLLM 0.32.0)"
    assert issue.splitlines()[0].replace("\\", "") == f"# {title}"
    for part in ("Your current environment", "Describe the bug", "How to reproduce"):
        assert f"### {part}" in issue
    assert "| target.attention\\_backend | TRITON\\_ATTN | CPU\\_ATTN | dropped |" in issue
    assert "- torch: `2.13.0`" in issue
    assert "uv pip install --torch-backend auto vllm==0.32.0" in issue
    [found] = re.findall(r"^```python\n(.*?)^```$", issue, re.DOTALL | re.MULTILINE)
    assert run_program(found).returncode == 0


def test_an_issue_of_an_emulated_cell_does_not_hide_it() -> None:
    cell = an_emulated_cell("h100-emulated/eagle3/triton/v0_32", speculative=EAGLE3, draft=TRITON)
    a_run(cell, an_emulated_report(cell, draft=groups("A")))

    issue = written("issue", cell)

    assert "(h100, emulated, vLLM 0.32.0)" in issue.splitlines()[0]
    assert "- device: **none**. NVIDIA H100 80GB HBM3 was emulated" in issue
    assert "which I don't have" in issue
