"""What a node and a probe are asked."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jobs.contract.builds import ProvisionedBuild
from jobs.contract.emulation import Card
from jobs.contract.terms import CONTRACT_VERSION, STRICT, Check, EngineMode, Isolation, Phase

NODES = "nnodes"
"""The engine argument that says how many nodes an engine spans."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """A node's part in an engine that spans several."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    number: int
    """vLLM's `node_rank`: 0 leads, and has the engine; the others have ranks of it."""

    node: str
    """Its name."""

    leader: str
    """The address of the one that leads."""

    port: int
    """There, for the ranks to find each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """What an engine does while its speed is measured."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    samples: int
    """So often, each time with other prompts, so that nothing is found in a cache."""

    prompts: int
    """At once, for the throughput; the time to the first token is of one alone."""

    prompt_tokens: int
    output_tokens: int
    seed: int


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

    seat: Seat | None = None
    """None: this node has all of the engine."""

    workload: Workload | None = None
    """None: no speed is measured."""

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
class Home:
    """Where the run keeps its files, which not every node sees."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    folder: str
    witness: str
    """A file in there whose name no other run has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Of a cell that several nodes run together: which one this node has, and how they meet."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    number: int
    """The first leads."""

    of: int
    node: str
    """Its name."""

    address: str
    """Where the others reach it."""

    leader: str
    """The address of the one that leads."""

    port: int = 0
    """There. The one that leads chooses it, and tells."""

    secret: str
    """By which the parts know each other."""

    def seat(self, port: int) -> Seat:
        return Seat(number=self.number, node=self.node, leader=self.leader, port=port)


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

    home: Home | None = None
    """None: whoever runs the cell sees the folder."""

    part: Part | None = None
    """None: the cell is all this node's."""

    cache: str
    """The cache directory on the node."""


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
        "seat": None if raw["seat"] is None else Seat(**raw["seat"]),
        "workload": None if raw["workload"] is None else Workload(**raw["workload"]),
    }
    return ProbeRequest(**raw)
