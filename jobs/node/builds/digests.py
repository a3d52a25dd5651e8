"""
What a build is, as one digest: equal inputs give an equal digest on every node.

A release's digest covers what is asked of the package index, not what the index
answers that day: the packages that came are in the environment's manifest.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.contract import BuildSpec
from jobs.node.builds import checkouts, interpreter
from jobs.node.builds.errors import BuildSpecError
from jobs.node.builds.interpreter import Installed


def digest_of(spec: BuildSpec) -> str:
    """Of everything that decides which code runs; reads the files that the build names."""
    if spec.interpreter is not None:
        python = interpreter.find(spec.interpreter)
        installed = interpreter.look(python)
        return of_build(spec, of_interpreter(python, installed, of_installed(installed)))
    return of_build(spec, of_packages(spec))


def of_build(spec: BuildSpec, base: str) -> str:
    """The base alone if nothing is laid over it. Names of builds and patches do not count."""
    if spec.checkout is None and not spec.patches:
        return base
    checkout = None if spec.checkout is None else of_checkout(checkouts.find(spec.checkout))
    patches = [patch.sha256 for patch in spec.patches]
    return _digest({"base": base, "checkout": checkout, "patches": patches})


def of_packages(spec: BuildSpec) -> str:
    """Of the environment that a release or a wheel is installed into."""
    wheel = None if spec.wheel is None else of_file(wheel_file(spec.wheel))
    return _digest(
        {
            "release": None if spec.release is None else [spec.distribution, spec.release],
            "wheel": wheel,
            "torch_backend": spec.torch_backend,
            "extra_requirements": sorted(spec.extra_requirements),
            "exclude": sorted(spec.exclude),
            "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        }
    )


def of_interpreter(python: str, installed: Installed, package: str) -> str:
    """*package* is the digest of its `vllm/`: whoever edits that in place has another build."""
    versions = [installed.vllm_version, installed.torch_version, installed.python_version]
    return _digest([python, versions, installed.record, package])


def of_installed(installed: Installed) -> str:
    return of_package(Path(installed.root), editable=installed.editable)


def of_package(root: Path, *, editable: bool = False) -> str:
    """
    Of the `vllm/` in a folder: Python files by content, all others by size, since the
    native libraries are large and the package's own record has their hashes. An
    editable installation has no such record: there the time of change counts too.
    """
    digest = hashlib.sha256()
    for path in files_under(root / "vllm"):
        stat = path.stat()
        if path.suffix == ".py":
            mark = of_file(path)
        else:
            mark = f"{stat.st_size} {stat.st_mtime_ns if editable else ''}"
        digest.update(f"{path.relative_to(root)}\0{mark}\n".encode())
    return digest.hexdigest()


def of_checkout(root: Path) -> str:
    digest = hashlib.sha256()
    for path in checkouts.files(root):
        digest.update(f"{path}\0{of_file(root / path)}\n".encode())
    return digest.hexdigest()


def of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_under(folder: Path) -> Iterator[Path]:
    """All files but bytecode, in order."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(place, name) for name in sorted(names) if not name.endswith(".pyc"))


def of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def wheel_file(name: str) -> Path:
    wheel = Path(name).expanduser().absolute()
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise BuildSpecError(f"wheel {name} is not a .whl file on this machine")
    return wheel


def _digest(inputs: Any) -> str:
    return of_text(json.dumps(inputs, sort_keys=True))
