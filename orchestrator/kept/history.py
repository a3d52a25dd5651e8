"""What cells took in earlier runs, time and memory, to tell what a plan will take."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median

import pydantic

from jobs.contract.terms import EngineMode, Isolation
from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import EMULATED
from orchestrator.errors import ClusterError
from orchestrator.kept.records import RecordFile
from orchestrator.kept.run_directory import newest_first
from orchestrator.running.forecast import HOST_BOOT_S, Work
from orchestrator.running.plan import host

RUNS_READ = 5
A_GUESS_S = {EngineMode.REAL: 2.0, EngineMode.EMULATED: 1.0}
"""For a cell when no cell was ever run: a warm cell of a tiny model."""

MARGIN = 1.25
"""Of memory: samples miss peaks, and no two starts of an engine take quite the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How a cell was tried: what one took that only imports says nothing of an engine."""

    isolation: Isolation
    check: str
    """Hashed, as records have it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Exit:
    out_of_memory: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attempt:
    isolation: Isolation
    exit: _Exit
    seconds: float
    memory_mib: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cost:
    """The part of a record that tells what an attempt took."""

    cell_id: str
    parts: dict[str, str] = field(default_factory=dict)
    attempt: _Attempt


_adapter = pydantic.TypeAdapter(_Cost)


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    seconds: dict[tuple[str, Way], float] = field(default_factory=dict)
    """By cell id: of its latest attempt."""

    memory_mib: dict[tuple[str, Way], int] = field(default_factory=dict)
    """By cell id: the most that an attempt was seen to have of its own."""

    def seconds_of(self, cell: Cell) -> float | None:
        return self.seconds.get((cell.id, way(cell)))

    def work(self, cells: Iterable[Cell]) -> dict[str, Work]:
        typical_s = cache(self._typical_s)
        return {
            cell.id: Work(
                seconds=cell.rounds
                * (self.seconds_of(cell) or typical_s(cell.engine_mode, way(cell))),
                host=_shared_host(cell),
                boot_s=HOST_BOOT_S[cell.engine_mode],
            )
            for cell in cells
        }

    def memory_gib(self, cells: Iterable[Cell]) -> dict[str, float]:
        """By cell id, with a margin; of the cells that were seen, or whose model was."""
        of_models: dict[tuple[str, str, Way], int] = {}
        for (cell_id, tried), mib in self.memory_mib.items():
            kind = (*_model_and_mode(cell_id), tried)
            of_models[kind] = max(mib, of_models.get(kind, 0))
        seen = (
            (cell.id, self.memory_mib.get((cell.id, now)) or of_models.get((*kind, now)))
            for cell in cells
            for now, kind in [(way(cell), _model_and_mode(cell.id))]
        )
        return {cell_id: mib * MARGIN / 1024 for cell_id, mib in seen if mib}

    def _typical_s(self, mode: EngineMode, now: Way) -> float:
        alike = [
            seconds
            for (cell_id, tried), seconds in self.seconds.items()
            if tried == now and cell_ids.is_emulated(cell_id) is (mode is EngineMode.EMULATED)
        ]
        return median(alike) if alike else A_GUESS_S[mode]


def read(runs: Path) -> History:
    """From the latest runs of whatever suite."""
    seconds: dict[tuple[str, Way], float] = {}
    memory_mib: dict[tuple[str, Way], int] = {}
    for cost in _costs(runs):
        attempt = cost.attempt
        # It may have got a host of its own only because the first one was lost.
        tried = Way(isolation=attempt.isolation, check=cost.parts.get("check", ""))
        key = cost.cell_id, tried
        seconds[key] = attempt.seconds
        # Of what memory was short for, it is not known how much it needs.
        if attempt.memory_mib and not attempt.exit.out_of_memory:
            memory_mib[key] = max(attempt.memory_mib, memory_mib.get(key, 0))
    return History(seconds=seconds, memory_mib=memory_mib)


def way(cell: Cell) -> Way:
    return _way(cell.isolation, cell.check_digest)


@cache
def _way(isolation: Isolation, check: str) -> Way:
    return Way(isolation=isolation, check=check)


def _costs(runs: Path) -> Iterator[_Cost]:
    """From the oldest to the latest."""
    for path in reversed(newest_first(runs)[:RUNS_READ]):
        with suppress(ClusterError):
            yield from RecordFile(path / "records.jsonl").parts(_adapter)


def _shared_host(cell: Cell) -> Hashable:
    """A cold cell's time has the start of its own interpreter in it."""
    return host(cell) if cell.isolation is Isolation.WARM else None


def _model_and_mode(cell_id: str) -> tuple[str, str]:
    hardware, model, *_ = cell_ids.parts(cell_id)
    return model, EMULATED if cell_ids.is_emulated(cell_id) else hardware
