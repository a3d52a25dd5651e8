"""
Which files of a vLLM checkout are laid over an installed vLLM.

Those that its authors write: what a build generates (native libraries, `_version.py`,
the Python side of bundled kernels) stays as the wheel has it, since the two must fit.
"""

import os
import subprocess
from pathlib import Path

from jobs.node.builds.errors import BuildNodeError, BuildSpecError

GENERATED_NAMES = {"_version.py"}
GENERATED_SUFFIXES = {".so", ".pyc", ".pyd"}


def find(name: str) -> Path:
    root = Path(name).expanduser().absolute()
    if not (root / "vllm" / "__init__.py").is_file():
        raise BuildSpecError(f"checkout {name} has no vllm/__init__.py: name a checkout's root")
    return root


def files(root: Path) -> list[str]:
    """Relative paths, in order."""
    paths = _known_to_git(root) if (root / ".git").exists() else _all(root)
    return sorted(path for path in paths if not _generated(path) and (root / path).is_file())


def _known_to_git(root: Path) -> list[str]:
    """Tracked, or new and not ignored: vLLM's own ignore rules name what its build generates."""
    # The checkout may be another user's, and its configuration must not start programs.
    trust = ["-c", "safe.directory=*", "-c", "core.fsmonitor=false"]
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "vllm"]
    try:
        answer = subprocess.run(
            ["git", *trust, "-C", str(root), *listing], capture_output=True, check=True
        )
    except FileNotFoundError as error:
        raise BuildNodeError(f"git is missing, and {root} is a git checkout") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise BuildSpecError(f"git can't list the files of {root}: {said}") from error
    return [os.fsdecode(path) for path in answer.stdout.split(b"\0") if path]


def _all(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in (root / "vllm").rglob("*") if path.is_file()]


def _generated(path: str) -> bool:
    name = Path(path).name
    return name in GENERATED_NAMES or Path(name).suffix in GENERATED_SUFFIXES
