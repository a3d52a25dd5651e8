"""How long cells took in earlier runs, to tell how long a plan will take."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from orchestrator.errors import ClusterError
from orchestrator.records import RecordFile
from orchestrator.run_directory import newest_first

RUNS_READ = 5
A_GUESS_S = 6.0
"""For a cell when no cell was ever run: a warm cell of a tiny model."""


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
    """Engine time of all of them, one after the other."""
    typical = median(known.values()) if known else A_GUESS_S
    return sum(known.get(cell_id, typical) for cell_id in cell_ids)
