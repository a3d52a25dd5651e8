"""What cells took in earlier runs, time and memory, to tell what a plan will take."""

from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from jobs.contract.terms import EngineMode, Isolation
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
class History:
    seconds: dict[str, float] = field(default_factory=dict)
    """Cell id to the seconds of its latest attempt."""

    memory_mib: dict[str, int] = field(default_factory=dict)
    """Cell id to the most that an attempt was seen to have of its own."""

    def work(self, cells: Iterable[Cell]) -> dict[str, Work]:
        typical = {mode: self._typical_s(mode) for mode in EngineMode}
        return {
            cell.id: Work(
                seconds=self.seconds.get(cell.id, typical[cell.engine_mode]),
                host=_shared_host(cell),
                boot_s=HOST_BOOT_S[cell.engine_mode],
            )
            for cell in cells
        }

    def memory_gib(self, cells: Iterable[Cell]) -> dict[str, float]:
        """By cell id, with a margin; of the cells that were seen, or whose model was."""
        of_models: dict[tuple[str, str], int] = {}
        for cell_id, mib in self.memory_mib.items():
            kind = _model_and_mode(cell_id)
            of_models[kind] = max(mib, of_models.get(kind, 0))
        seen = (
            (cell.id, self.memory_mib.get(cell.id) or of_models.get(_model_and_mode(cell.id)))
            for cell in cells
        )
        return {cell_id: mib * MARGIN / 1024 for cell_id, mib in seen if mib}

    def _typical_s(self, mode: EngineMode) -> float:
        alike = [
            seconds
            for cell_id, seconds in self.seconds.items()
            if _is_emulated(cell_id) is (mode is EngineMode.EMULATED)
        ]
        return median(alike) if alike else A_GUESS_S[mode]


def read(runs: Path) -> History:
    """From the latest runs of whatever suite."""
    seconds: dict[str, float] = {}
    memory_mib: dict[str, int] = {}
    for path in reversed(newest_first(runs)[:RUNS_READ]):
        with suppress(ClusterError):
            for record in RecordFile(path / "records.jsonl"):
                if (attempt := record.attempt) is None:
                    continue
                seconds[record.cell_id] = attempt.seconds
                # Of what memory was short for, it is not known how much it needs.
                if attempt.memory_mib and not attempt.exit.out_of_memory:
                    most = max(attempt.memory_mib, memory_mib.get(record.cell_id, 0))
                    memory_mib[record.cell_id] = most
    return History(seconds=seconds, memory_mib=memory_mib)


def _shared_host(cell: Cell) -> Hashable:
    """A cold cell's time has the start of its own interpreter in it."""
    return host(cell) if cell.isolation is Isolation.WARM else None


def _model_and_mode(cell_id: str) -> tuple[str, str]:
    hardware, model, *_ = cell_id.split("/")
    return model, EMULATED if _is_emulated(cell_id) else hardware


def _is_emulated(cell_id: str) -> bool:
    return cell_id.split("/", maxsplit=1)[0].endswith(EMULATED)
