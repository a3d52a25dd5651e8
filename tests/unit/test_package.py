"""What is built of this project: a wheel with all that runs, an sdist to build and test it from."""

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from orchestrator.version import VERSION

ROOT = Path(__file__).parents[2]
SHIPPED = ("orchestrator", "jobs", "hydra_plugins", "conf")
NEEDED = (*SHIPPED, "tests", "benchmarks", "scripts", "docs", "deploy", "requirements")
NAME = f"vllm_matrix-{VERSION}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both, as `pip` and `uv build` make them, without the network."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / NAME


def build(source: Path, folder: Path, *words: str) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "uv",
            "build",
            *words,
            "--no-build-isolation",
            "--offline",
            "--python",
            sys.executable,
            "--out-dir",
            str(folder),
            str(source),
        ],
        check=True,
        capture_output=True,
    )


def in_wheel(folder: Path) -> set[str]:
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl") as archive:
        return {*archive.namelist()}


def files(*folders: str) -> Iterator[str]:
    for folder in folders:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(file.relative_to(ROOT))


def test_the_wheel_has_every_file_that_runs_or_is_read(built: Path) -> None:
    places = {
        f"orchestrator/{file}" if file.startswith("conf/") else file for file in files(*SHIPPED)
    }

    assert places
    assert not places - in_wheel(built)


def test_the_wheel_has_nothing_else(built: Path) -> None:
    tops = {PurePosixPath(file).parts[0] for file in in_wheel(built)}

    assert tops == {"orchestrator", "jobs", "hydra_plugins", f"{NAME}.dist-info"}
    assert not [file for file in in_wheel(built) if file.endswith((".pyc", "/.gitignore"))]


def test_the_sdist_has_all_that_is_needed_to_build_and_test(unpacked: Path) -> None:
    there = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}

    assert not {*files(*NEEDED), "pyproject.toml", "noxfile.py", "LICENSE"} - there


def test_the_sdist_alone_builds_the_same_wheel(built: Path, unpacked: Path, tmp_path: Path) -> None:
    build(unpacked, tmp_path, "--wheel")

    assert in_wheel(tmp_path) == in_wheel(built)


@pytest.mark.timeout(400)
def test_tests_run_from_the_sdist_alone(unpacked: Path) -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/unit/test_selection.py",
            "tests/unit/test_gate.py",
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=unpacked,
        env={"PATH": "", "PYTHONPATH": str(unpacked)},
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
