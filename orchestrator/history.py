"""How long cells took in earlier runs, to tell how long a plan will take."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from orchestrator.config import EMULATED
from orchestrator.errors import ClusterError
from orchestrator.records import RecordFile
from orchestrator.run_directory import newest_first

RUNS_READ = 5
A_GUESS_S = 6.0
"""For a cell when no cell was ever run: a warm cell of a tiny model."""

AN_EMULATED_GUESS_S = 1.0
HOST_BOOT_S = 25.0
"""Measured, of a host that emulates a card; there is one for each card and build."""


def seconds_of_cells(runs: Path) -> dict[str, float]:
    """Cell id to the seconds of its latest attempt."""
    known: dict[str, float] = {}
    for path in reversed(newest_first(runs)[:RUNS_READ]):
        # A run that another version wrote says nothing about time, and that is fine here.
        with contextlib.suppress(ClusterError):
            known |= {
                record.cell_id: record.attempt.seconds
                for record in RecordFile(path / "records.jsonl")
                if record.attempt is not None
            }
    return known


def estimate_s(cell_ids: Iterable[str], known: dict[str, float]) -> float:
    """Work on one core: all cells one after the other, and the hosts of emulated ones."""
    ids = [*cell_ids]
    seconds = sum(known.get(cell_id, _typical_s(cell_id, known)) for cell_id in ids)
    hosts = {(cell_id.split("/")[0], cell_id.split("/")[-1]) for cell_id in filter(_emulated, ids)}
    return seconds + HOST_BOOT_S * len(hosts)


def _typical_s(cell_id: str, known: dict[str, float]) -> float:
    emulated = _emulated(cell_id)
    alike = [seconds for other, seconds in known.items() if _emulated(other) is emulated]
    return median(alike) if alike else (AN_EMULATED_GUESS_S if emulated else A_GUESS_S)


def _emulated(cell_id: str) -> bool:
    return cell_id.split("/", maxsplit=1)[0].endswith(EMULATED)
