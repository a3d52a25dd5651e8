"""
`python -m benchmarks.emulation [KEY=VALUE ...]`: what an emulated matrix costs.

Runs `suite=catalogue` (or what the words say) as a user would, and watches its processes.
The last line is one JSON object: `cell_s` (median), `host_boot_s` (median), `host_mib`
(largest host), `cells`, `matrix_s`; also `cell_mib` (largest private
memory of a cell in flight), `hosts`, and `boot_ratio`, the boots that a cell would cost.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

LOOK_S = 0.2
HOST = "jobs.probe.host"


@dataclass(kw_only=True)
class Seen:
    """Hosts and cells of a run, by process id, as long as they were there."""

    boots: dict[int, float] = field(default_factory=dict)
    """Host to the seconds from its start to its first cell."""

    host_bytes: dict[int, int] = field(default_factory=dict)
    cell_bytes: dict[int, int] = field(default_factory=dict)

    def look(self, run: psutil.Process) -> None:
        for process in _hosts(run):
            with suppress(psutil.Error):
                self._look_at(process)

    def _look_at(self, host: psutil.Process) -> None:
        self._grow(self.host_bytes, host.pid, host.memory_info().rss)
        for cell in filter(_leads_a_session, host.children()):
            with suppress(psutil.Error):
                self.boots.setdefault(host.pid, cell.create_time() - host.create_time())
                self._grow(self.cell_bytes, cell.pid, cell.memory_full_info().uss)

    @staticmethod
    def _grow(most: dict[int, int], pid: int, size: int) -> None:
        most[pid] = max(size, most.get(pid, 0))


def main(words: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-m", "orchestrator", f"runs={runs}", *words]
        seen = Seen()
        began = time.monotonic()
        with subprocess.Popen(command) as process:
            while process.poll() is None:
                seen.look(psutil.Process(process.pid))
                time.sleep(LOOK_S)
        matrix_s = time.monotonic() - began
        attempts = [*_attempts(Path(runs))]
    if not attempts or not seen.boots:
        sys.exit("no cell was run, so there is nothing to measure")
    print(json.dumps(figures(attempts, seen, matrix_s)))  # noqa: T201 - it is what this is for


def figures(attempts: Sequence[dict[str, Any]], seen: Seen, matrix_s: float) -> dict[str, float]:
    cell_s = statistics.median(attempt["seconds"] for attempt in attempts)
    boot_s = statistics.median(seen.boots.values())
    return {
        "cell_s": round(cell_s, 3),
        "host_boot_s": round(boot_s, 1),
        "host_mib": max(seen.host_bytes.values()) >> 20,
        "cells": len(attempts),
        "matrix_s": round(matrix_s, 1),
        "cell_mib": max(seen.cell_bytes.values(), default=0) >> 20,
        "hosts": len(seen.boots),
        "boot_ratio": round(boot_s / cell_s, 1),
    }


def _hosts(run: psutil.Process) -> Iterator[psutil.Process]:
    """They outlive who starts them, and lead no session, other than starters and cells."""
    started = run.create_time()
    for process in psutil.process_iter(["cmdline", "create_time"]):
        info = process.info
        if HOST in (info["cmdline"] or ()) and info["create_time"] >= started:
            with suppress(psutil.Error):
                if not _leads_a_session(process):
                    yield process


def _leads_a_session(process: psutil.Process) -> bool:
    try:
        return os.getsid(process.pid) == process.pid
    except ProcessLookupError:
        return False


def _attempts(runs: Path) -> Iterator[dict[str, Any]]:
    for file in runs.glob("*/records.jsonl"):
        for line in file.read_text().splitlines():
            if attempt := json.loads(line)["attempt"]:
                yield attempt


if __name__ == "__main__":
    main(sys.argv[1:] or ["suite=catalogue"])
