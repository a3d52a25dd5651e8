"""Which cells run, for how long and in which phase, as the files of their attempts tell."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.contract.terms import Phase
from jobs.node.cell_files import CellFiles
from orchestrator.running.forecast import Running

LOOKED_AT = 1000
"""Cells that were submitted first and have not ended: who runs is among them, in a large run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempted(Running):
    phase: Phase | None
    """None until there is a process of its own."""


@dataclass(slots=True)
class _Began:
    at: float
    forked_after_s: float | None = None


@dataclass(slots=True)
class RunningCells:
    _began: dict[str, _Began] = field(default_factory=dict)
    """By the folder of the attempt. From when it was seen: clocks of other machines don't count."""

    def look(self, submitted: Mapping[str, str]) -> dict[str, Attempted]:
        """*submitted* is by cell id: the folders of attempts that have not ended."""
        now = time.monotonic()
        found: dict[str, Attempted] = {}
        for cell_id, folder in [*submitted.items()][:LOOKED_AT]:
            files = CellFiles(folder=Path(folder))
            # Whoever submitted the attempt saw to it that there was none before.
            if folder in self._began or _is_there(files.request):
                began = self._began.setdefault(folder, _Began(now))
                found[cell_id] = _attempted(files, began, now)
        return found


def _attempted(files: CellFiles, began: _Began, now: float) -> Attempted:
    age_s = now - began.at
    phase = files.read_phase() if _is_there(files.phase) else None
    if phase is not None and began.forked_after_s is None:
        began.forked_after_s = age_s
    return Attempted(age_s=age_s, forked_after_s=began.forked_after_s, phase=phase)


def _is_there(file: Path) -> bool:
    """As far as the engine, whose folder it is in, lets anybody see."""
    try:
        return file.exists()
    except OSError:
        return False
