"""What stays of a cell that ended: asked (by id and digest), seen, concluded."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from jobs.contract.attempts import Attempt
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.seen import SpeedSeen
from jobs.contract.terms import STRICT
from orchestrator.concluded.judge import Judgement, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One engine of several whose speed was measured, and when and where."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    session: str
    """Of all that were measured in turns."""

    turn: int
    """In the order in which they were started."""

    node: str
    devices: tuple[str, ...] = ()
    speed: SpeedSeen
    host_mib: int | None = None
    """The most that its processes were seen to have of their own."""

    kv_blocks: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """The last word on one cell."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cell_id: str
    digest: str = ""
    """Of the cell and its build: the same digest need not be tried again. Empty: never tried."""

    parts: dict[str, str] = field(default_factory=dict)
    """What the digest is made of; see `Cell.parts`."""

    kept_from: str | None = None
    """The earlier run whose attempt this is, where nothing that decides has changed since."""

    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    build: ProvisionedBuild | None = None
    attempt: Attempt | None = None
    earlier: tuple[str, ...] = ()
    """Why earlier attempts of this run did not count, in order."""

    rounds: tuple[Round, ...] = ()
    """Where speed was measured; the attempt is the last one's."""

    judgement: Judgement
    record_version: Literal[1] = 1

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict
