"""Every call of uv, and what its failures mean."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from jobs.node.builds import tethered
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError

Say = Callable[[str], None]

NO_SOLUTION = 1
"""uv's exit status when the requirements are at fault; 2 is anything else."""

_OF_THE_NODE = re.compile(
    r"os error|Could not resolve host|Failed to connect|Connection \w+|timed out|unreachable"
)
"""Under a failed build of a package, or a failed fetch of git's, the node or its network."""


def binary() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise BuildNodeError(f"uv is missing: neither {beside} nor on PATH; `pip install uv`")
    return found


def make_environment(folder: Path, *, say: Say, lock: int) -> None:
    """A bare environment of this Python."""
    arguments = ["venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)]
    _run(arguments, title="creating environment", env={}, say=say, fds=(lock,))


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
    backend, env = _torch_source(torch_backend)
    options = ["--python", str(environment), *backend]
    with _Lists() as lists:
        wanted = ["--override", lists.path(overrides), "-r", lists.path(what)]
        arguments = ["pip", "install", *options, *wanted]
        _run(arguments, title=title, env=env, say=say, fds=(lock, *lists.fds))


def unpack(folder: Path, what: Sequence[str], *, title: str, say: Say, lock: int) -> None:
    """Lay packages into a folder that is no environment, without what they need in turn."""
    # Not uv's own cache, which would keep hundreds of MiB for what is unpacked once.
    cache = folder.with_name(f"{folder.name}-cache")
    options = ["--python", sys.executable, "--target", str(folder), "--cache-dir", str(cache)]
    # A release without a wheel for this machine would be compiled, which takes hours.
    with _Lists() as lists:
        arguments = ["pip", "install", "--no-deps", "--no-build", *options, "-r", lists.path(what)]
        _run(arguments, title=title, env={}, say=say, fds=(lock, *lists.fds))
    shutil.rmtree(cache)


class _Lists:
    """
    Requirements as uv reads them, in memory: their URLs may hold credentials, which
    neither a command line nor a file that outlives us may show.
    """

    def __init__(self) -> None:
        self.fds: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self.fds:
            os.close(fd)

    def path(self, lines: Sequence[str]) -> str:
        fd = os.memfd_create("requirements")
        self.fds.append(fd)
        with open(fd, "w", closefd=False) as file:
            file.writelines(f"{line}\n" for line in lines)
        return f"/proc/self/fd/{fd}"


def _torch_source(backend: str) -> tuple[list[str], dict[str, str]]:
    """A folder of wheels that has torch for this backend, or else the backend's own index."""
    folders = [*_listed("UV_FIND_LINKS", ","), *_listed("PIP_FIND_LINKS", None)]
    if any(list(Path(folder).glob(f"torch-*+{backend}-*.whl")) for folder in folders):
        return [], {"UV_FIND_LINKS": ",".join(folders)}
    return ["--torch-backend", backend], {}


def _listed(variable: str, separator: str | None) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(separator) if entry]


def _run(
    arguments: list[str], *, title: str, env: dict[str, str], say: Say, fds: tuple[int, ...]
) -> None:
    """
    Say the title, and again with each stage that uv gets to.

    *fds* has the lock: if this process is killed, what uv has started may go on writing, and
    keeps it until it is done.
    """
    say(title)
    lines: list[str] = []
    with subprocess.Popen(
        tethered.command([binary(), "--color", "never", *arguments]),
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        pass_fds=fds,
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
    if code == NO_SOLUTION and not _OF_THE_NODE.search(said):
        return BuildSpecError(f"uv can't install it:\n  {said}")
    return BuildNodeError(f"uv failed with exit status {code}:\n  {said}")
