"""The vLLM that a build starts from: an environment of our own, or an interpreter used in place."""

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.contract import BuildSpec
from jobs.node.builds import digests, interpreter, store, uv
from jobs.node.builds.errors import BuildNodeError, BuildSpecError

Say = Callable[[str], None]
GIB = 2**30
SPACE_GIB = {"cpu": 5, "other": 14}
"""What an environment takes while it is made, with uv's cache on the same disk."""


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
    files: int = 0
    """Files of the environment, without bytecode; 0 for an interpreter used in place."""

    mib: int = 0
    seconds: float = 0.0


def ready(spec: BuildSpec, cache: Path, say: Say) -> tuple[Base, bool]:
    """The base, and whether it was there before."""
    if spec.interpreter is not None:
        return _in_place(spec.interpreter), True
    digest = digests.of_packages(spec)
    folder = cache / "builds" / f"{digest[:20]}-{_place(spec, cache)}"
    return store.ready(
        folder,
        look=_look,
        make=lambda lock: asdict(_made(spec, digest, folder, say, lock)),
        say=say,
    )


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
    if spec.torch_backend == "auto":
        kind += [device for device in ("/dev/nvidiactl", "/dev/kfd") if Path(device).exists()]
    return digests.of_text("\0".join(kind))[:8]


def _look(manifest: dict[str, Any]) -> Base:
    base = Base(**manifest)
    if not interpreter.starts(base.python):
        raise store.Stale("has an interpreter that does not start")
    if _count_files(_environment_of(base)) < base.files:
        raise store.Stale("has lost files")
    if digests.of_package(Path(base.root)) != base.package:
        raise store.Stale("was edited in place")
    return base


def _made(spec: BuildSpec, digest: str, folder: Path, say: Say, lock: int) -> Base:
    started = time.monotonic()
    _require_space(folder, spec)
    say("creating environment")
    environment = folder / "env"
    uv.make_environment(environment, lock=lock)
    _install(spec, environment, say, lock)
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
        files=_count_files(environment),
        mib=_mib(environment),
        seconds=round(time.monotonic() - started, 1),
    )


def _install(spec: BuildSpec, environment: Path, say: Say, lock: int) -> None:
    if spec.wheel is not None:
        wheel = digests.wheel_file(spec.wheel)
        what, title = str(wheel), wheel.name
    else:
        what, title = f"{spec.distribution}=={spec.release}", f"{spec.distribution} {spec.release}"
    say(f"installing {title}")
    uv.install(
        environment,
        spec,
        what,
        on_stage=lambda stage: say(f"installing {title} (uv: {stage[0].lower()}{stage[1:]})"),
        lock=lock,
    )


def _require_space(folder: Path, spec: BuildSpec) -> None:
    needed = SPACE_GIB.get(spec.torch_backend, SPACE_GIB["other"])
    free = shutil.disk_usage(folder).free / GIB
    if free < needed:
        raise BuildNodeError(
            f"{folder.parent} has {free:.1f} GiB left and an environment takes {needed}: "
            f"free some, or set `cache` to another disk"
        )


def _environment_of(base: Base) -> Path:
    return Path(base.python).parent.parent


def _count_files(environment: Path) -> int:
    return sum(1 for _ in digests.files_under(environment))


def _mib(environment: Path) -> int:
    return sum(path.lstat().st_size for path in digests.files_under(environment)) // 2**20
