"""What a job on GitHub is told: by commands that nobody else can give, and in a summary."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import github
from orchestrator.asked.policies import ConcernKind, Gate
from orchestrator.commands.conf_places import places
from orchestrator.commands.submit import tell
from orchestrator.github import Annotation, Place
from orchestrator.kept.run_directory import Asked, RunDirectory
from orchestrator.reports.annotations import Places, annotations
from orchestrator.reports.document import Document
from tests.builders import a_cell, a_failed_report
from tests.unit.kept_runs import a_run
from tests.unit.test_markdown import FELL_BACK, HEALTHY, LOST, WAIVER, a_document, many

ROOT = Path(__file__).parents[2]
NOWHERE = Places(of_entry=lambda *_: None, of_waiver=lambda _: None)
HOSTILE = "boom\n::error::mine\n  ::add-mask::x\n##[error]old\n::stop-commands::pause"


@dataclass
class Runner:
    """Reads a step's output as GitHub's does: which commands it obeys, and which lines it shows."""

    obeyed: list[str] = field(default_factory=list)
    _resumes_at: str | None = None

    def read(self, output: str) -> "Runner":
        for line in output.splitlines():
            command = re.match(r"\s*::([a-z-]+)(?: [^:]*)?::(.*)", line)
            if self._resumes_at is not None:
                if line.strip() == f"::{self._resumes_at}::":
                    self._resumes_at = None
            elif command is not None and command[1] == "stop-commands":
                self._resumes_at = command[2]
            elif command is not None or "##[" in line:
                self.obeyed.append(line)
        return self


def titles(report: Document, level: str) -> list[str]:
    return [each.title for each in annotations(report, NOWHERE) if each.level == level]


def test_what_blocks_is_an_error_and_the_gates_sentence_is_the_first() -> None:
    report = a_document(HEALTHY, FELL_BACK, LOST)
    first, *others = annotations(report, NOWHERE)

    assert first == Annotation(
        level="error", title="vllm-matrix demo", message=report.gate.sentence
    )
    assert [(each.level, each.title) for each in others] == [
        ("error", "failed (silent_fallback): 1 cell"),
        ("error", "not run: 1 cell"),
    ]
    assert others[0].message == (
        "draft.attention_backend was dropped: asked TRITON_ATTN, got CPU_ATTN\n"
        "vllm: The engine runs on something else than was asked, and did not say so as an error.\n"
        "cpu/eagle3/draft_triton/v0_32"
    )


def test_what_ships_is_a_notice_and_a_waiver_to_look_at_is_a_warning() -> None:
    ended = replace(WAIVER, cells="*/gone/*", expires=date(2026, 12, 1))
    report = a_document(HEALTHY, FELL_BACK, waivers=(WAIVER, ended))
    drifted = replace(report.gate.concerns[0], kind=ConcernKind.DRIFT, effect="tolerated")
    report = replace(report, gate=replace(report.gate, concerns=(drifted,)))

    assert titles(report, "error") == []
    assert titles(report, "warning") == ["waiver of */gone/*: expired"]
    assert titles(report, "notice") == ["vllm-matrix demo", "drift (silent_fallback): 1 cell"]


def test_of_more_than_github_shows_the_last_says_what_is_missing() -> None:
    found = annotations(many(30), NOWHERE)

    assert len(found) == 10
    assert found[-1].title == "and 22 more"
    assert found[-1].message.count("\n") == 22


def test_cells_that_fail_alike_are_one_annotation_that_names_some() -> None:
    _, one = annotations(many(30, "broken"), NOWHERE)

    assert one.title == "failed (internal_error): 30 cells"
    assert one.message.endswith("\ncpu/llama/b9/v1\nand 20 more")


@given(st.text(), st.text(), st.text())
def test_a_command_is_one_line_and_holds_all_that_was_said(
    title: str, message: str, file: str
) -> None:
    said = Annotation(level="error", title=title, message=message, place=Place(file=file, line=3))
    [line, end] = re.split("[\r\n]", github.to_commands([said]))
    assert end == ""
    properties, data = re.fullmatch(r"::error ([^:]*)::(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    read = dict(each.split("=", 1) for each in properties.split(","))

    assert read == {"file": _written(read["file"], file), "line": "3", "title": read["title"]}
    assert _decoded(read["title"]) == title[: github.TITLE_CHARS]
    assert _decoded(data) == message[: github.MESSAGE_CHARS]


def _written(read: str, file: str) -> str:
    assert _decoded(read) == file
    return read


def _decoded(text: str) -> str:
    for code, sign in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, sign)
    return text


def asked(command: tuple[str, ...] = (), gate: Gate | None = None) -> Asked:
    return Asked(suite="demo", command=command, gate=gate or Gate(), cells=())


def test_an_entry_is_found_where_its_file_begins_to_say_something(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "mine.yaml").write_text("# @package build.mine\n\nrelease: 0.32.0\n")
    of_entry = places(asked((f"--config-dir={tmp_path}",)), tmp_path).of_entry

    assert of_entry("build", "mine") == Place(file="build/mine.yaml", line=3)
    assert of_entry("build", "v0_32") is None, "it is not below the workspace"
    assert of_entry("build", "nobody's") is None


def test_a_waiver_is_found_in_its_file_by_its_cells(tmp_path: Path) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(
        "waivers:\n"
        "  - {cells: '*/a/*', category: timeout, reason: x, owner: me}\n"
        "  - reason: y\n"
        '    cells: "*/b/*"\n'
    )
    of_waiver = places(asked(gate=Gate(waiver_files=(str(file),))), tmp_path).of_waiver

    assert of_waiver(replace(WAIVER, cells="*/a/*")) == Place(file="known.yaml", line=2)
    assert of_waiver(replace(WAIVER, cells="*/b/*")) == Place(file="known.yaml", line=3)
    assert of_waiver(replace(WAIVER, cells="*/c/*")) is None
    file.write_text("waivers: [")
    assert of_waiver(replace(WAIVER, cells="*/a/*")) is None


def test_an_error_points_to_what_its_owner_has_to_look_at() -> None:
    there = Places(
        of_entry=lambda group, name: Place(file=f"conf/{group}/{name}.yaml", line=1),
        of_waiver=lambda _: Place(file="conf/gate/demo.yaml", line=9),
    )
    refused = (a_cell("cpu/llama/odd/v0_32"), a_failed_report("Unknown attention backend: X."))
    taken = (
        a_cell("cpu/llama/port/v0_32"),
        a_failed_report("Address already in use", type_="OSError"),
    )
    outlived = replace(WAIVER, cells="cpu/llama/auto/*")
    found = annotations(
        a_document(HEALTHY, FELL_BACK, refused, taken, LOST, waivers=(outlived,)), there
    )

    assert {each.title: each.place and each.place.file for each in found[1:]} == {
        "failed (silent_fallback): 1 cell": "conf/build/v0_32.yaml",
        "failed (config_invalid): 1 cell": "conf/backend/odd.yaml",
        "infrastructure (port_in_use): 1 cell": None,
        "not run: 1 cell": None,
        "waiver": None,
        "waiver of cpu/llama/auto/*: unexpectedly passing": "conf/gate/demo.yaml",
    }


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    """A run on disk whose engine tries to speak to the runner."""
    cell = a_cell("cpu/llama/bad/v0_32")
    run = a_run("2026-12-02-demo", [(cell, a_failed_report(HOSTILE))], runs=tmp_path / "runs")
    (run.path / "probe.log").write_text(HOSTILE)
    return run.path


def vllm_matrix(*words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *words],
        cwd=folder,
        env={**_clean(os.environ), "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        text=True,
        check=False,
    )


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """These tests may be run by a job of GitHub's themselves."""
    ours = ("GITHUB_", "VLLM_MATRIX_GITHUB")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


def on_github(folder: Path) -> dict[str, str]:
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_RUN_ID": "7",
    }


def test_the_gate_annotates_a_job_and_leaves_a_summary(hostile_run: Path, tmp_path: Path) -> None:
    (tmp_path / "summary.md").write_text("what the step said before\n")
    ended = vllm_matrix("gate", str(hostile_run), folder=tmp_path, **on_github(tmp_path))
    runner = Runner().read(ended.stderr)
    failed = "failed (internal_error)%3A 1 cell"
    reason = "expected that it runs, but internal_error in load: ValueError:"

    assert ended.returncode == 1
    assert [line.partition(" boom")[0] for line in runner.obeyed] == [
        "::error title=vllm-matrix demo::blocked: 1 failed (internal_error) of 1 cells",
        f"::error file=conf/build/v0_32.yaml,line=2,title={failed}::{reason}",
    ]
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("what the step said before\n**blocked: 1 failed ")
    assert "(<https://github.example/me/mine/actions/runs/7>)" in summary


@pytest.mark.parametrize("words", [("report",), ("gate",), ("explain", "cpu/llama/bad/v0_32")])
def test_what_an_engine_says_is_no_command(
    words: tuple[str, ...], hostile_run: Path, tmp_path: Path
) -> None:
    command, *cell = words
    ended = vllm_matrix(command, str(hostile_run), *cell, folder=tmp_path, **on_github(tmp_path))
    [first, *_, last] = ended.stderr.splitlines()

    assert Runner().read(ended.stdout).obeyed != [], "without care, the runner would obey"
    assert Runner().read(f"{first}\n{ended.stdout}\n{last}").obeyed == []


def test_a_process_that_was_forked_does_not_end_the_deafness() -> None:
    forks = """
import os, sys
from orchestrator import github
with github.deaf():
    if os.fork() == 0:
        sys.exit()
    os.wait()
    sys.stderr.write("::error::hostile\\n")
"""
    ended = subprocess.run(
        [sys.executable, "-c", forks],
        env={**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_ACTIONS": "true"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert Runner().read(ended.stderr).obeyed == []
    assert len(ended.stderr.splitlines()) == 3


def test_who_submitted_a_run_from_a_job_is_told_as_well(
    hostile_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in on_github(tmp_path).items():
        monkeypatch.setenv(name, value)
    tell(RunDirectory(hostile_run))

    assert len(Runner().read(capsys.readouterr().err).obeyed) == 2
    assert (tmp_path / "summary.md").read_text().startswith("**blocked: ")


def test_a_job_can_be_left_alone_by_a_switch(hostile_run: Path, tmp_path: Path) -> None:
    environment = {**on_github(tmp_path), "VLLM_MATRIX_GITHUB": "off"}
    ended = vllm_matrix("gate", str(hostile_run), folder=tmp_path, **environment)

    assert Runner().read(ended.stderr).obeyed == []
    assert not (tmp_path / "summary.md").exists()


def test_elsewhere_nothing_is_said_to_github(hostile_run: Path, tmp_path: Path) -> None:
    assert "::" not in vllm_matrix("gate", str(hostile_run), folder=tmp_path).stderr


def test_a_report_for_a_program_is_clean_on_github_too(hostile_run: Path, tmp_path: Path) -> None:
    there = vllm_matrix(
        "report", str(hostile_run), "--format", "json", folder=tmp_path, **on_github(tmp_path)
    )
    here = vllm_matrix("report", str(hostile_run), "--format", "json", folder=tmp_path)

    assert there.stdout == here.stdout


def test_the_format_can_be_asked_for_anywhere(hostile_run: Path, tmp_path: Path) -> None:
    ended = vllm_matrix("report", str(hostile_run), "--format", "github", folder=tmp_path)

    assert len(Runner().read(ended.stdout).obeyed) == 2


def test_a_mistake_is_an_annotation_too(tmp_path: Path) -> None:
    ended = vllm_matrix("gate", "nothing", folder=tmp_path, **on_github(tmp_path))

    assert ended.returncode == 2
    assert Runner().read(ended.stderr).obeyed == [
        "::error title=vllm-matrix::there is no run nothing; runs in runs: none yet"
    ]
