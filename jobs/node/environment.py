"""
In which environment an engine runs on this node.

A host has the part that counts while vLLM is imported; what can wait until after the
fork is the cell's own, so that cells which differ only in that share a host.
"""

import dataclasses
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import jobs
from jobs import processes
from jobs.contract.asked import CellRequest
from jobs.contract.emulation import EMULATION_VARIABLE, Emulation, PackageSet
from jobs.node import caches, interfaces, runtime_folder
from jobs.node.errors import NodeError
from jobs.quiet import NO_USAGE_REPORTS
from jobs.secrets import NAMES_VARIABLE

DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Ray sets them anew for each task; an engine reads them when it starts."""

OURS = "MATRIX_"
"""Variables of this project are read by its own code, after the fork."""

OF_ENGINES = ("VLLM_PORT", "VLLM_USE_V2_MODEL_RUNNER", "VLLM_HOST_IP", "GLOO_SOCKET_IFNAME")
"""They are read when an engine is made, and not while vLLM is imported."""

FOREIGN = ("RAY_", "HYDRA_", "PYTHON", "VLLM_", "PYTEST_")
FOREIGN_NAMES = ("OLDPWD", "PWD", "SHLVL", "TMPDIR", "TRITON_INTERPRET", "VIRTUAL_ENV", "_")

DEFAULTS = {
    # Cells of a node run side by side, and threads of two engines on the same cores wait
    # for each other in spin locks.
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # Neither the working directory nor a script's folder is anything to import from.
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONFAULTHANDLER": "1",
    # A process that renames itself must not write over the cell's token.
    "SPT_NOENV": "1",
}


PRETENDED = {
    # Imported on a pretended card, it compiles an addon for it, for half a minute and in vain.
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",
}


def of_host(request: CellRequest) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _is_foreign(name)}
    asked = {name: value for name, value in request.env.items() if not waits(name)}
    return {
        **kept,
        **DEFAULTS,
        **_caches(_imports_folder(request)),
        **asked,
        **NO_USAGE_REPORTS,
        **_emulation(request),
        "PYTHONPATH": os.pathsep.join(_import_path(request)),
        processes.MARKER: "-" * processes.TOKEN_LENGTH,
    }


def of_cell(request: CellRequest, temporary: Path, port: int) -> dict[str, str | None]:
    """What to set, or with None to unset, after the fork."""
    devices = {name: os.environ.get(name) for name in DEVICE_VARIABLES}
    caches = _caches(temporary)
    asked = {name: value for name, value in request.env.items() if waits(name) or name in caches}
    ours = {
        "TMPDIR": str(temporary),
        "VLLM_PORT": str(port),
        NAMES_VARIABLE: ",".join(request.secrets),
    }
    return {**devices, **caches, **ours, **_reached(request), **asked}


def _reached(request: CellRequest) -> dict[str, str]:
    """Where ranks on other nodes find those of this one; a host's name may lead to itself alone."""
    if (part := request.part) is None:
        return {}
    interface = interfaces.holding(part.address)
    found = {} if interface is None else {"GLOO_SOCKET_IFNAME": interface}
    return {"VLLM_HOST_IP": part.address, **found}


def waits(name: str) -> bool:
    """Whether a variable is set after the fork, so that cells which differ in it share a host."""
    return name in (*DEVICE_VARIABLES, *OF_ENGINES) or name.startswith(OURS)


def _is_foreign(name: str) -> bool:
    return name.startswith(FOREIGN) or name in FOREIGN_NAMES or name in DEVICE_VARIABLES


def _emulation(request: CellRequest) -> dict[str, str]:
    """What the host has to pretend before it imports vLLM; see jobs.probe.emulation."""
    card, build = request.probe.card, request.build
    if card is None:
        return {}
    if build.operators is None:
        raise NodeError(f"build {build.name} is none for emulated engines")
    emulation = Emulation(
        # Cells of one device and of several share a host.
        card=dataclasses.replace(card, devices=1),
        packages=build.packages.get(card.vendor, PackageSet(name="none")),
        operators=build.operators,
    )
    return {**PRETENDED, EMULATION_VARIABLE: json.dumps(dataclasses.asdict(emulation))}


def _caches(root: Path) -> dict[str, str]:
    """No cell must find what another one compiled."""
    return {
        "VLLM_CACHE_ROOT": str(root / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(root / "inductor"),
        "TRITON_CACHE_DIR": str(root / "triton"),
        "FLASHINFER_WORKSPACE_BASE": str(root / "flashinfer"),
    }


def _imports_folder(request: CellRequest) -> Path:
    """For what packages write when they are imported. It goes with the raylet."""
    return runtime_folder.current() / request.build.digest[:16]


def _import_path(request: CellRequest) -> list[str]:
    package = Path(jobs.__file__ or "").parent
    interpreter = [str(package / "probe" / "site")] if _interprets_triton(request) else []
    folders = [*request.build.path_entries, *_package_folder(request)]
    return [*interpreter, *folders, str(_folder_of(package, request))]


def _package_folder(request: CellRequest) -> list[str]:
    """The optional packages for the emulated card's vendor."""
    card, folders = request.probe.card, request.build.package_folders
    return [folders[card.vendor]] if card is not None and card.vendor in folders else []


def _interprets_triton(request: CellRequest) -> bool:
    return request.env.get("TRITON_INTERPRET") == "1"


def _folder_of(package: Path, request: CellRequest) -> Path:
    """A folder with our package and nothing of what lies beside it."""
    name = hashlib.sha256(str(package).encode()).hexdigest()[:12]
    folder = caches.folder(request.cache) / "import" / name
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (folder / package.name).symlink_to(package)
    return folder
