"""Every call of uv, and what its failures mean."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError

Say = Callable[[str], None]

NO_SOLUTION = 1
"""uv's exit status when the requirements are at fault; 2 is anything else."""


def binary() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise BuildNodeError(f"uv is missing: neither {beside} nor on PATH; `pip install uv`")
    return found


def make_environment(folder: Path, *, say: Say, lock: int) -> None:
    """A bare environment of this Python."""
    arguments = ["venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)]
    _run(arguments, title="creating environment", env={}, say=say, lock=lock)


def install(  # noqa: PLR0913  two are what a call of uv needs besides
    environment: Path,
    what: Sequence[str],
    *,
    title: str,
    overrides: Sequence[str],
    torch_backend: str,
    say: Say,
    lock: int,
) -> None:
    """Install requirements or wheels, and what they need in turn."""
    file = environment.with_name("overrides.txt")
    file.write_text("".join(f"{line}\n" for line in overrides))
    backend, env = _torch_source(torch_backend)
    options = ["--python", str(environment), "--override", str(file), *backend]
    _run(["pip", "install", *options, "--", *what], title=title, env=env, say=say, lock=lock)


def unpack(folder: Path, what: Sequence[str], *, title: str, say: Say, lock: int) -> None:
    """Lay packages into a folder that is no environment, without what they need in turn."""
    # Not uv's own cache, which would keep hundreds of MiB for what is unpacked once.
    cache = folder.with_name(f"{folder.name}-cache")
    options = ["--python", sys.executable, "--target", str(folder), "--cache-dir", str(cache)]
    # A release without a wheel for this machine would be compiled, which takes hours.
    arguments = ["pip", "install", "--no-deps", "--no-build", *options, "--", *what]
    _run(arguments, title=title, env={}, say=say, lock=lock)
    shutil.rmtree(cache)


def _torch_source(backend: str) -> tuple[list[str], dict[str, str]]:
    """A folder of wheels that has torch for this backend, or else the backend's own index."""
    folders = [*_listed("UV_FIND_LINKS", ","), *_listed("PIP_FIND_LINKS", None)]
    if any(list(Path(folder).glob(f"torch-*+{backend}-*.whl")) for folder in folders):
        return [], {"UV_FIND_LINKS": ",".join(folders)}
    return ["--torch-backend", backend], {}


def _listed(variable: str, separator: str | None) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(separator) if entry]


def _run(arguments: list[str], *, title: str, env: dict[str, str], say: Say, lock: int) -> None:
    """Say the title, and again with each stage that uv gets to."""
    say(title)
    lines: list[str] = []
    with subprocess.Popen(
        [binary(), "--color", "never", *arguments],
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        # If this process is killed, uv goes on writing: it keeps the lock until it is done.
        pass_fds=(lock,),
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                lines.append(line.rstrip())
                if _is_stage(stage := line.strip()):
                    say(f"{title} (uv: {stage[0].lower()}{stage[1:]})")
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise _failure(process.returncode, lines)


def _is_stage(line: str) -> bool:
    return line.split(" ", 1)[0] in {"Resolved", "Prepared", "Installed", "Downloading", "Building"}


def _failure(code: int, lines: list[str]) -> BuildError:
    first = next((at for at, line in enumerate(lines) if line.startswith("error:")), 0)
    said = "\n  ".join(lines[first:][:20])
    # An error of the system under a failed build of a package is still the node's.
    if code == NO_SOLUTION and "os error" not in said:
        return BuildSpecError(f"uv can't install it:\n  {said}")
    return BuildNodeError(f"uv failed with exit status {code}:\n  {said}")
