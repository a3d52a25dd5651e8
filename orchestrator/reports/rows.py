"""One cell of a report: what was asked, seen and concluded."""

from dataclasses import dataclass, field

from jobs.contract.seen import AttentionGroup, MoeGroup, RankSeen, Rejection, Selection
from jobs.contract.terms import EngineMode, Isolation
from orchestrator.asked import cell_ids
from orchestrator.asked.config import FieldName, RequestVerdict
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Arm
from orchestrator.concluded.speed import Measured


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRow:
    asked: str | None
    got: str | None
    verdict: RequestVerdict


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildRow:
    name: str
    origin: str
    """Where its code comes from: `release 0.32.0`, `wheel FILE`, `interpreter PYTHON`."""

    checkout: str | None
    digest: str | None
    """None where the build was never made ready."""

    vllm_version: str | None
    patches: dict[str, str | None] = field(default_factory=dict)
    """Patch name to the SHA-256 of its text as the node had it; None: it was never applied."""

    sources: dict[str, str] = field(default_factory=dict)
    """Patched files to the SHA-256 that the probe found where vLLM was imported from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementRow:
    node: str
    labels: dict[str, str]
    devices: tuple[str, ...]
    device: dict[str, str]
    """The device as vLLM saw it."""

    isolation: Isolation
    others: tuple[str, ...] = ()
    """The names of the other nodes, where the engine spans several."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRow:
    category: str
    owner: str
    phase: str | None
    """The phase it happened in; None where the engine ran, but not on what was asked."""

    cause: str
    """One line: type and message of the innermost exception, or how the process ended."""

    next: str
    """What to do about it."""

    excerpt: tuple[str, ...] = ()
    """Where it waited (the innermost frame first), where it was raised, or a part of the log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellRow:
    id: str
    hardware: str
    model: str
    backend: str
    verdict: Verdict
    category: str | None
    """The kind of failure seen; also of a passed cell, where the failure was expected."""

    reasons: tuple[str, ...]
    """Why it did not pass."""

    waived: bool
    arm: Arm | None = None
    """The build's part in the suite's proof, if it has one. Only *after* is to be shipped."""

    engine_mode: EngineMode
    emulated: str | None = None
    """Which of the report's `emulations` says what was not real."""

    check: str
    asked: dict[FieldName, str] = field(default_factory=dict)
    outcome: str | None
    requests: dict[str, RequestRow]
    ranks: tuple[RankSeen, ...] = ()
    """Of an engine of several. The next four are of the first rank of each pipeline stage."""

    target: tuple[AttentionGroup, ...] = ()
    draft: tuple[AttentionGroup, ...] = ()
    target_moe: tuple[MoeGroup, ...] = ()
    draft_moe: tuple[MoeGroup, ...] = ()
    kv_layout: str | None = None
    runner: str | None = None
    phases: dict[str, float] = field(default_factory=dict)
    """Phase to seconds, in order."""

    seconds: float | None = None
    attempts: int = 0
    kept_from: str | None = None
    """The earlier run whose attempt this is, where nothing that decides has changed since."""

    speed: tuple[Measured, ...] = ()
    """Where it was measured."""

    failure: FailureRow | None = None
    rejections: tuple[Rejection, ...] = ()
    selections: tuple[Selection, ...] = ()
    """What the layers asked of vLLM's attention selector, and its whole answers."""

    build: BuildRow
    placement: PlacementRow | None = None
    versions: dict[str, str] = field(default_factory=dict)
    log: str | None = None
    """The probe's output; a path inside the run directory is relative to it."""

    @property
    def card(self) -> str:
        """The hardware as people must see it: `h100-emulated` where it is not there."""
        return cell_ids.card(self.id)
