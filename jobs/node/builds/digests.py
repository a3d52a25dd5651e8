"""
What a build is, as one digest: equal inputs give an equal digest on every node.

A release's digest covers what is asked of the package index, not what the index
answers that day: the packages that came are in the environment's manifest.
"""

import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

from jobs.contract.builds import BuildSpec
from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode
from jobs.node.builds import checkouts, folders, interpreter, requirements, wheels
from jobs.node.builds.interpreter import Installed


def digest_of(spec: BuildSpec) -> str:
    """Of everything that decides which code runs; reads the files that the build names."""
    if spec.interpreter is not None:
        python = interpreter.find(spec.interpreter)
        installed = interpreter.look(python)
        return of_build(spec, of_interpreter(python, installed, of_installed(installed)))
    return of_build(spec, of_environment(spec))


def of_build(spec: BuildSpec, base: str) -> str:
    """The base alone if nothing is laid over it. Names of builds and patches do not count."""
    added: dict[str, Any] = {}
    if spec.checkout is not None:
        added["checkout"] = of_checkout(checkouts.find(spec.checkout))
    if spec.patches:
        added["patches"] = [patch.sha256 for patch in spec.patches]
    if spec.engine_mode is EngineMode.EMULATED:
        added["packages"] = {
            vendor: [packages.name, packages.installed, packages.assumed]
            for vendor, packages in spec.packages.items()
        }
    return _digest({"base": base} | added) if added else base


def of_environment(spec: BuildSpec) -> str:
    """Of the environment that a release or a wheel is installed into."""
    wheel = None if spec.wheel is None else of_file(wheels.find(spec.wheel))
    return _digest(
        {
            "release": None if spec.release is None else [spec.distribution, spec.release],
            "wheel": wheel,
            "engine_mode": spec.engine_mode,
            "torch_backend": requirements.torch_backend(spec),
            "extra_requirements": sorted(spec.extra_requirements),
            "overrides": sorted(requirements.overrides(spec)),
            "python": _python(),
        }
    )


def of_packages(packages: PackageSet) -> str:
    """Of the folder that a package set is installed into."""
    return _digest([sorted(packages.installed), _python(), sys.platform, platform.machine()])


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
    for path in folders.files(root / "vllm"):
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


def of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _digest(inputs: Any) -> str:
    return of_text(json.dumps(inputs, sort_keys=True))
