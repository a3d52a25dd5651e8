"""What Tab completes, and how soon: by the words themselves, and at a real shell."""

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.__main__ import answer
from orchestrator.asked.compose import options
from orchestrator.commands import COMMANDS
from orchestrator.commands.completion import SHELLS
from orchestrator.completing import WORDS, code
from orchestrator.completing.command_line import candidates
from tests.unit.typed_at_a_shell import CLEARED, READY, shell

ROOT = Path(__file__).parents[2]
CELLS = ("cpu/llama/auto/v0_32", "cpu/llama/cpu_attn/v0_32", "h100-emulated/qwen3_8b/auto/v0_32")
BUDGET_S = 0.3
HEAVY = {"hydra", "omegaconf", "pydantic", "ray", "rich", "yaml"}

ZSH = (
    "autoload -Uz compinit; compinit -u -D; PROMPT=ready-for-words\\>; unsetopt zle_bracketed_paste"
)
FISH = "function fish_prompt; echo -n 'ready-for-words>'; end"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for age, name in enumerate(("2026-12-02-demo", "2026-12-01-releases")):
        run = tmp_path / "runs" / name
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps({"cells": [{"id": each} for each in CELLS]}))
        os.utime(run, (1e9 - age, 1e9 - age))
    mine = tmp_path / "my-conf" / "suite"
    mine.mkdir(parents=True)
    (mine / "mine.yaml").write_text("suite: {name: mine}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(line: str) -> list[str]:
    """What can stand at the end of *line*."""
    *before, prefix = line.split(" ")
    return [*candidates(json.loads(WORDS.read_text()), before[1:], prefix)]


def test_the_first_word_is_a_command_or_one_of_runs_words() -> None:
    assert told("vllm-matrix ") == [*COMMANDS, "--help", "--version"]
    assert told("vllm-matrix exp") == ["explain"]
    assert told("vllm-matrix suite=dem") == ["suite=demo"]


def test_the_name_of_run_may_be_left_out() -> None:
    assert told("vllm-matrix suite=demo engine_mode=e") == ["engine_mode=emulated"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vllm-matrix report --f", ["--format"]),
        ("vllm-matrix report latest --format js", ["json"]),
        ("vllm-matrix report latest --format=ju", ["--format=junit"]),
        ("vllm-matrix plan --config-d", ["--config-dir"]),
        ("vllm-matrix plan --config-dir m", ["my-conf/"]),
        ("vllm-matrix report ", ["latest", "2026-12-02-demo", "2026-12-01-releases"]),
        ("vllm-matrix report --format md 2026-12-01", ["2026-12-01-releases"]),
        ("vllm-matrix report runs/2026-12-01", ["runs/2026-12-01-releases/"]),
        ("vllm-matrix report latest ", []),
        ("vllm-matrix explain latest cpu/llama/c", ["cpu/llama/cpu_attn/v0_32"]),
        ("vllm-matrix explain 2026-12-02-demo h", ["h100-emulated/qwen3_8b/auto/v0_32"]),
        ("vllm-matrix explain nothing h", []),
        ("vllm-matrix history cpu/llama/a", ["cpu/llama/auto/v0_32"]),
        ("vllm-matrix compare latest:v0_3", ["latest:v0_32"]),
        ("vllm-matrix compare latest:v0_32 2026-12-02", ["2026-12-02-demo"]),
        ("vllm-matrix gate latest --policy ni", ["nightly"]),
        ("vllm-matrix gate latest --baseline 2026-12-02", ["2026-12-02-demo"]),
        ("vllm-matrix completion z", ["zsh"]),
        ("vllm-matrix help ga", ["gate"]),
    ],
)
def test_a_commands_words_and_flags(line: str, expected: list[str]) -> None:
    assert told(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plan hardw", ["hardware=", "hardware."]),
        ("plan hardware=h1", ["hardware=h100", "hardware=h100_nvl"]),
        ("plan hardware=[h20", ["hardware=[h200,", "hardware=[h200]"]),
        ("plan hardware=[h200,h20", []),
        ("plan hardware=[h200,h10", ["hardware=[h200,h100", "hardware=[h200,h100_nvl"]),
        ("plan hardware=[h100", ["hardware=[h100,", "hardware=[h100]", "hardware=[h100_nvl"]),
        ("plan -m hardware=cpu,mi300", ["hardware=cpu,mi300x"]),
        ("plan budget.max_m", ["budget.max_minutes="]),
        ("plan resume=", ["resume=true", "resume=false"]),
        ("plan ++resume=f", ["++resume=false"]),
        ("plan suite.che", ["suite.check="]),
        ("plan suite.check=", ["suite.check=import", "suite.check=init", "suite.check=generate"]),
        ("plan model.gemma3_", ["model.gemma3_27b.path="]),
        ("plan model.llama.mem", ["model.llama.memory_gib="]),
        ("plan hardware.h200.vendor=a", ["hardware.h200.vendor=amd"]),
        ("plan suite=mi", []),
        ("plan --config-dir my-conf suite=mi", ["suite=mine"]),
        ("plan --config-dir=my-conf suite=mi", ["suite=mine"]),
    ],
)
def test_hydras_words(line: str, expected: list[str]) -> None:
    found = told(f"vllm-matrix {line}")

    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("group", ["hardware", "model", "backend", "build", "suite", "cluster"])
def test_every_file_of_a_group_can_be_chosen(group: str) -> None:
    assert told(f"vllm-matrix run {group}=") == [f"{group}={name}" for name in options(group)]


def test_many_cells_are_told_part_by_part(folder: Path) -> None:
    ids = [f"{card}/m{n}/auto/v" for card in ("h100", "h200") for n in range(50)]
    (folder / "runs" / "2026-12-02-demo" / "run.json").write_text(
        json.dumps({"cells": [{"id": each} for each in ids]})
    )

    assert told("vllm-matrix explain 2026-12-02-demo ") == ["h100/", "h200/"]
    assert len(told("vllm-matrix explain 2026-12-02-demo h100/")) == 50


def test_an_answer_comes_in_time_since_nothing_heavy_is_imported(folder: Path) -> None:
    line = "vllm-matrix plan --config-dir my-conf hardware=[h100,mi"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from orchestrator.start import main; main()"],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": "bash",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(folder / "told"),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        },
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert "mi300x" in (folder / "told").read_text()
    imported = {row.rpartition("|")[2].strip() for row in ran.stderr.splitlines()}
    assert "argparse" in imported
    assert not HEAVY & imported
    # Of a processor, since what else the machine does is another matter.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < BUDGET_S


@pytest.mark.parametrize("name", SHELLS)
def test_each_shell_has_its_code(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["completion", name]) == 0
    assert "vllm-matrix" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in SHELLS if shutil.which(name)])
def test_a_real_shell_completes_as_it_is_typed(name: str, folder: Path) -> None:
    """Every machine has bash; of the others, those that it has."""
    (folder / "completion").write_text(code(name))
    _put_on_path(folder)
    commands = {
        "bash": ["bash", "--norc", "--noprofile", "-i"],
        "zsh": ["zsh", "-f", "-i"],
        "fish": ["fish", "--no-config", "-i"],
    }
    environment = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PS1": READY,
        "HOME": str(folder),
        "INPUTRC": os.devnull,
    }
    with shell(commands[name], folder, environment) as typed:
        for line in {"zsh": [ZSH], "fish": [FISH]}.get(name, []):
            typed.press(f"{line}\r")
            assert typed.shows(READY)
        typed.press("source ./completion; echo do''ne\r")
        assert typed.shows("done")
        assert typed.shows(READY)
        for keys, completed in (
            ("vllm-matrix expl\t", "explain"),
            ("lat\t", "latest"),
            ("h100\t", "qwen3_8b"),
            (f"{CLEARED}vllm-matrix plan suite=draft_mo\t", "draft_moe_backend"),
            ("'hardware=[h200,mi32\t", "5x"),  # of mi325x, what was not there yet
        ):
            typed.press(keys)
            assert typed.shows(completed), keys
        typed.press(CLEARED)


def _put_on_path(folder: Path) -> None:
    """The program, as an installation does."""
    script = folder / "bin" / "vllm-matrix"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom orchestrator.start import main\nmain()\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
