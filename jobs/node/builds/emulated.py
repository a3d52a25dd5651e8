"""
The environment of emulated engines: vLLM's Python half, on torch for the CPU.

No kernel runs in one, so of the wheel for GPUs, which need not fit this machine's
hardware, the Python files are kept and the names of its operators.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from jobs.contract.builds import BuildSpec
from jobs.node.builds import folders, interpreter, operators, requirements, uv
from jobs.node.builds.errors import BuildSpecError
from jobs.node.builds.uv import Say

ELF = b"\x7fELF"
SOURCES = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl"}
"""From which an engine compiles kernels while it runs."""

GPU_ONLY = "vllm.cumem_allocator"
"""A native module that vLLM's wheels for GPUs have, and its wheel for CPUs has not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wheel:
    """As it is unpacked below *root*."""

    title: str
    root: Path
    metadata: Path
    python: list[Path]
    libraries: list[Path]
    mib: int


def fill(environment: Path, spec: BuildSpec, say: Say, lock: int) -> str:
    """Install into a bare environment; returns the file with vLLM's operators, beside that."""
    wheel = _fetched(environment.with_name("wheel"), spec, say, lock)
    schemas = _operators(wheel)
    uv.install(
        environment,
        requirements.needed(spec, wheel.metadata),
        title=f"installing what {wheel.title} needs",
        overrides=requirements.overrides(spec),
        torch_backend=requirements.torch_backend(spec),
        say=say,
        lock=lock,
    )
    python = str(environment / "bin" / "python")
    site = interpreter.site_packages(python)
    _keep(wheel, site)
    count = sum(map(len, schemas.values()))
    kept = folders.mib(site / "vllm")
    say(f"kept {kept} of {wheel.mib} MiB of {wheel.title}, and {count} operators")
    say("compiling Python files")
    interpreter.compile_all(python, site / "vllm", lock=lock)
    file = environment.with_name("operators.json")
    file.write_text(json.dumps(schemas, indent=1))
    return str(file)


def _fetched(root: Path, spec: BuildSpec, say: Say, lock: int) -> _Wheel:
    vllm, title = requirements.vllm(spec)
    uv.unpack(root, [vllm], title=f"fetching {title}", say=say, lock=lock)
    metadata = next(root.glob("vllm*.dist-info"), None)
    if metadata is None or not (root / "vllm" / "__init__.py").is_file():
        raise BuildSpecError(f"{title} is no vLLM")
    files = [*folders.files(root / "vllm"), *folders.files(metadata)]
    native = {path for path in files if _is_native(path)}
    return _Wheel(
        title=title,
        root=root,
        metadata=metadata,
        python=[path for path in files if path not in native and path.suffix not in SOURCES],
        libraries=[path for path in files if path in native and path.suffix == ".so"],
        mib=folders.mib(root),
    )


def _is_native(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(ELF)) == ELF


def _operators(wheel: _Wheel) -> dict[str, list[str]]:
    schemas = operators.of_libraries(wheel.root, wheel.libraries)
    if GPU_ONLY not in schemas:
        raise BuildSpecError(
            f"{wheel.title} is no vLLM for GPUs, whose Python files emulated engines need: "
            f"name a release of the distribution vllm, or such a wheel"
        )
    if not any(found for module, found in schemas.items() if module.startswith("vllm._C")):
        raise BuildSpecError(
            f"the native libraries of {wheel.title} declare no operator that could be read, "
            f"so nothing is known of what its engines would find"
        )
    return schemas


def _keep(wheel: _Wheel, site: Path) -> None:
    """Move the Python half; the rest goes."""
    for path in wheel.python:
        kept = site / path.relative_to(wheel.root)
        kept.parent.mkdir(parents=True, exist_ok=True)
        path.rename(kept)
    shutil.rmtree(wheel.root)
