"""The vLLM that a build starts from: an environment of our own, or an interpreter used in place."""

import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.contract.builds import BuildSpec
from jobs.contract.terms import EngineMode
from jobs.node.builds import digests, emulated, folders, interpreter, requirements, space, store, uv
from jobs.node.builds.errors import BuildSpecError
from jobs.node.builds.uv import Say

SPACE_GIB = {"cpu": 5, "emulated": 6, "other": 14}
"""What an environment takes while it is made, with uv's cache on the same disk."""

MARGIN = 1.25
"""Over the size of the finished environment, where that is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """As it stands in the manifest of an environment."""

    digest: str
    python: str
    root: str
    """The folder that holds `vllm/`."""

    package: str
    """The digest of that `vllm/`."""

    vllm_version: str
    torch_version: str
    python_version: str
    packages: dict[str, str]
    operators: str | None = None
    """For emulated engines: the file with vLLM's operators."""

    files: int = 0
    """Of the environment, without bytecode; 0 for an interpreter used in place."""

    mib: int = 0
    seconds: float = 0.0


def ready(spec: BuildSpec, cache: Path, say: Say, *, known_mib: int) -> tuple[Base, bool]:
    """The base, and whether it was there before. *known_mib* is its size elsewhere, or 0."""
    if spec.interpreter is not None:
        return _in_place(spec.interpreter), True
    digest = digests.of_environment(spec)
    folder = cache / "builds" / f"{digest[:20]}-{_place(spec, cache)}"

    def make(lock: int) -> dict[str, Any]:
        space.require(folder, _needed_gib(spec, known_mib))
        return asdict(_made(spec, digest, folder, say, lock))

    return store.ready(folder, look=_look, make=make, say=say)


def _in_place(name: str) -> Base:
    python = interpreter.find(name)
    installed = interpreter.look(python)
    package = digests.of_installed(installed)
    return Base(
        digest=digests.of_interpreter(python, installed, package),
        python=python,
        root=installed.root,
        package=package,
        vllm_version=installed.vllm_version,
        torch_version=installed.torch_version,
        python_version=installed.python_version,
        packages=installed.packages,
    )


def _place(spec: BuildSpec, cache: Path) -> str:
    """
    Keeps environments apart that can't be one: nodes of several kinds may share a
    cache, and an environment names its own path and its Python's.
    """
    kind = [str(cache), sys.platform, platform.machine(), os.path.realpath(sys.executable)]
    if requirements.torch_backend(spec) == "auto":
        kind += [device for device in ("/dev/nvidiactl", "/dev/kfd") if Path(device).exists()]
    return digests.of_text("\0".join(kind))[:8]


def _look(manifest: dict[str, Any]) -> Base:
    base = Base(**manifest)
    if not interpreter.starts(base.python):
        raise store.Stale("has an interpreter that does not start")
    environment = Path(base.python).parents[1]
    kept = [environment, *([] if base.operators is None else [Path(base.operators)])]
    if not all(path.exists() for path in kept) or folders.count(environment) < base.files:
        raise store.Stale("has lost files")
    if digests.of_package(Path(base.root)) != base.package:
        raise store.Stale("was edited in place")
    return base


def _made(spec: BuildSpec, digest: str, folder: Path, say: Say, lock: int) -> Base:
    started = time.monotonic()
    environment = folder / "env"
    uv.make_environment(environment, say=say, lock=lock)
    fill = emulated.fill if spec.engine_mode is EngineMode.EMULATED else _fill
    operators = fill(environment, spec, say, lock)
    python = environment / "bin" / "python"
    installed = interpreter.look(str(python))
    say("importing vLLM for the first time")
    if (wrong := interpreter.import_error(str(python), lock=lock)) is not None:
        raise BuildSpecError(
            f"vLLM {installed.vllm_version} is installed but can't be imported: {wrong}"
        )
    return Base(
        digest=digest,
        python=str(python),
        root=installed.root,
        package=digests.of_package(Path(installed.root)),
        vllm_version=installed.vllm_version,
        torch_version=installed.torch_version,
        python_version=installed.python_version,
        packages=installed.packages,
        operators=operators,
        files=folders.count(environment),
        mib=folders.mib(environment),
        seconds=round(time.monotonic() - started, 1),
    )


def _fill(environment: Path, spec: BuildSpec, say: Say, lock: int) -> None:
    vllm, title = requirements.vllm(spec)
    uv.install(
        environment,
        [vllm, *spec.extra_requirements],
        title=f"installing {title}",
        overrides=requirements.overrides(spec),
        torch_backend=requirements.torch_backend(spec),
        say=say,
        lock=lock,
    )


def _needed_gib(spec: BuildSpec, known_mib: int) -> float:
    if spec.engine_mode is EngineMode.EMULATED:
        # Most of it goes again: the wheel for GPUs, of which the Python half is kept.
        return SPACE_GIB["emulated"]
    if known_mib:
        return known_mib / 1024 * MARGIN
    return SPACE_GIB.get(spec.torch_backend, SPACE_GIB["other"])
