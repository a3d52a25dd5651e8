"""What a probe saw of an engine. Observations only, never a verdict."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from jobs.contract.emulation import Emulated
from jobs.contract.terms import CONTRACT_VERSION, STRICT, EngineMode, Phase


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
    local_experts: int | None = None
    """Of each layer, on one rank; all of them unless experts are parallel."""


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

    handled: bool = False
    """
    Nobody says that it caused the one before it: that was raised while this one was being
    handled, or both are in one group.
    """


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
    data_parallel: int | None = None
    expert_parallel: bool | None = None
    speculative_method: str | None = None
    target_class: str | None = None
    draft_class: str | None = None
    linear_methods: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RankSeen:
    """What one rank of an engine says of itself. Stages of a pipeline hold different layers."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    rank: int
    """Among all of the engine, those of other data-parallel ranks too."""

    tensor: int = 0
    pipeline: int = 0
    data: int = 0
    expert: int | None = None
    """None: experts are not parallel."""

    node: str | None = None
    """The name of the node that it is on; None: one node has all of them."""

    target: tuple[AttentionGroup, ...] = ()
    draft: tuple[AttentionGroup, ...] = ()
    target_moe: tuple[MoeGroup, ...] = ()
    draft_moe: tuple[MoeGroup, ...] = ()
    kv_layout: str | None = None
    runner: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeedSample:
    """One measurement of an engine that is warm."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    tokens_per_s: float
    """Tokens put out, of all prompts together."""

    ttft_s: float
    """For one prompt alone."""

    acceptance_length: float | None = None
    """Tokens that a step of speculative decoding puts out on average; None: it had no draft."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeedSeen:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    samples: tuple[SpeedSample, ...]
    device_peak_mib: int | None = None
    """The most that tensors of one rank took on its device; None where it is a CPU."""


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
    ranks: tuple[RankSeen, ...] = ()
    """Of an engine of several; empty where there is one, which the fields below tell of."""

    target: tuple[AttentionGroup, ...] = ()
    """Of the first rank of each stage of a pipeline, together; so are the next three."""

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

    speed: SpeedSeen | None = None

    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    """Contradictions between sources of one fact; things that could not be read."""

    contract_version: int = CONTRACT_VERSION
