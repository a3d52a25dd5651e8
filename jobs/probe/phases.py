"""
How far a cell got, and when: a file that every process of the cell appends to.

On disk, so that it outlives whichever process dies first.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.contract.seen import PhaseTime
from jobs.contract.terms import Phase
from jobs.probe import files

HISTORY = "phases.jsonl"
CURRENT = "phase.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    phase: Phase
    at: float
    """Seconds of the monotonic clock, which all processes of a machine share."""


def enter(folder: Path, phase: Phase) -> None:
    """Say that *phase* begins. Ranks of one engine all say so; repeating it changes nothing."""
    line = json.dumps({"phase": phase, "at": time.monotonic()})
    files.append_line(folder / HISTORY, line)
    files.replace(folder / CURRENT, line)


def history(folder: Path) -> list[Entry]:
    lines = (folder / HISTORY).read_text().splitlines()
    return [Entry(phase=Phase(raw["phase"]), at=raw["at"]) for raw in map(json.loads, lines)]


def times(entries: Sequence[Entry], *, until: float) -> tuple[PhaseTime, ...]:
    """Seconds per phase, in the order of phases; one that was entered twice counts twice."""
    seconds: dict[Phase, float] = {}
    ends = [entry.at for entry in entries[1:]] + [until]
    for entry, end in zip(entries, ends, strict=True):
        seconds[entry.phase] = seconds.get(entry.phase, 0.0) + end - entry.at
    return tuple(
        PhaseTime(phase=phase, seconds=round(seconds[phase], 3))
        for phase in Phase
        if phase in seconds
    )
