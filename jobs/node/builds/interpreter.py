"""What an interpreter has, and whether it starts at all."""

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from jobs.node.builds import tethered
from jobs.node.builds.errors import BuildNodeError, BuildSpecError

LOOK = Path(__file__).with_name("look.py")
LOOK_DEADLINE_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """The vLLM that an interpreter has, as its packages tell."""

    python_version: str
    root: str
    """The folder that holds `vllm/`."""

    vllm_version: str
    torch_version: str
    record: str
    """SHA-256 of the list of files that its package installed, with their hashes."""

    editable: bool
    packages: dict[str, str]


def find(name: str) -> str:
    """The full path of the interpreter that a build names."""
    expanded = str(Path(name).expanduser()) if "/" in name else name
    found = shutil.which(expanded)
    if found is None:
        raise BuildSpecError(f"interpreter {name} is not there, or may not be executed")
    # Not resolved: the link in a virtual environment is what makes it that environment.
    return str(Path(found).absolute())


def look(python: str) -> Installed:
    """Raises BuildSpecError if this is no Python, or one without vLLM."""
    try:
        answer = _run(python, LOOK.read_text(), deadline_s=LOOK_DEADLINE_S)
        found = json.loads(answer.stdout.splitlines()[-1])
        if found["root"] is not None:
            return Installed(**found)
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError) as error:
        raise BuildSpecError(f"{python} does not answer like a Python interpreter") from error
    raise BuildSpecError(f"{python} (Python {found['python_version']}) has no vLLM")


def starts(python: str) -> bool:
    try:
        return _run(python, "", deadline_s=LOOK_DEADLINE_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def import_error(python: str, *, lock: int) -> str | None:
    """
    Import vLLM once and say how that failed, if it did. It also leaves its bytecode,
    so that the first engine starts as fast as the next; hence the lock of that folder.
    """
    answer = _run(python, "import vllm.entrypoints.llm", deadline_s=None, keeps=(lock,))
    if answer.returncode == -signal.SIGKILL:
        raise BuildNodeError("importing vLLM was killed; is there memory enough?")
    if answer.returncode == 0:
        return None
    return (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[-1]


def compile_all(python: str, folder: Path, *, lock: int) -> None:
    """
    Leave the bytecode of all files, also of those that no import here would reach. Some
    packages hold templates that are no Python; they are passed over.
    """
    program = f"import compileall; compileall.compile_dir({str(folder)!r}, quiet=2)"
    _run(python, program, deadline_s=None, keeps=(lock,))


def site_packages(python: str) -> Path:
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(_run(python, program, deadline_s=LOOK_DEADLINE_S).stdout.strip())


def _run(
    python: str, program: str, *, deadline_s: float | None, keeps: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    # Without the caller's PYTHON* variables, and away from its folder: neither is the build's.
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        tethered.command([python, "-c", program]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=deadline_s,
        cwd="/",
        env=env,
        pass_fds=keeps,
    )
