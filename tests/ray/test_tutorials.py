"""Each tutorial, typed as it stands in an empty folder: its exit codes, and what it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import ClusterError
from tests.tutorials import TUTORIALS, steps

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(2400)]

ROOT = Path(__file__).parents[2]
TRIES = 3


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_does_what_it_says(tutorial: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "vllm-matrix"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom orchestrator.start import main\nmain()\n")
    program.chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir()
    for step in steps(tutorial):
        ran = typed(step.script, folder, program.parent)
        assert ran.returncode == step.code, f"{step.script}\n{ran.stdout}"
        assert step.missing(ran.stdout) == [], f"{step.script}\n{ran.stdout}"


def typed(script: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    """As the exit code says, a machine that has too much to do is asked again."""
    for left in reversed(range(TRIES)):
        ran = subprocess.run(
            ["bash", "-eu", "-c", script],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "RAY_AUTH_MODE": "disabled",
            },
        )
        if ran.returncode != ClusterError.exit_code or not left:
            return ran
    raise AssertionError
