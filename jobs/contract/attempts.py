"""What a node saw of one try of a cell, whether or not its probe left a report."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from jobs.contract.seen import ProbeReport
from jobs.contract.terms import STRICT, Isolation, Phase


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

    parted: bool = False
    """Another part of the cell, on another node, ended; so the node ended this one."""

    node: str | None = None
    """The one that this is about, where the cell had several."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    node: str
    labels: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """The names of the other nodes, where the cell had several."""


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
