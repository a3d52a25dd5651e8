"""Every call of uv, and what its failures mean."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from jobs.contract import BuildSpec
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError

NO_SOLUTION = 1
"""uv's exit status when the requirements are at fault; 2 is anything else."""


def binary() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise BuildNodeError(f"uv is missing: neither {beside} nor on PATH; `pip install uv`")
    return found


def make_environment(folder: Path, *, lock: int) -> None:
    """A bare environment of this Python."""
    arguments = ["venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)]
    _run(arguments, env={}, on_stage=lambda _: None, lock=lock)


def install(
    environment: Path, spec: BuildSpec, what: str, *, on_stage: Callable[[str], None], lock: int
) -> None:
    """Install a requirement or a wheel, as the build wants it."""
    # A requirement that holds nowhere, in place of the one that others have for the package.
    never = "".join(f"{name} ; sys_platform == 'never'\n" for name in spec.exclude)
    overrides = environment.with_name("excluded.txt")
    overrides.write_text(never)
    backend, env = _torch_source(spec.torch_backend)
    options = ["--python", str(environment), "--override", str(overrides), *backend]
    arguments = ["pip", "install", *options, "--", what, *spec.extra_requirements]
    _run(arguments, env=env, on_stage=on_stage, lock=lock)


def _torch_source(backend: str) -> tuple[list[str], dict[str, str]]:
    """A folder of wheels that has torch for this backend, or else the backend's own index."""
    folders = [*_listed("UV_FIND_LINKS", ","), *_listed("PIP_FIND_LINKS", None)]
    if any(list(Path(folder).glob(f"torch-*+{backend}-*.whl")) for folder in folders):
        return [], {"UV_FIND_LINKS": ",".join(folders)}
    return ["--torch-backend", backend], {}


def _listed(variable: str, separator: str | None) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(separator) if entry]


def _run(
    arguments: list[str], *, env: dict[str, str], on_stage: Callable[[str], None], lock: int
) -> None:
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
                if _is_stage(line):
                    on_stage(line.strip())
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
