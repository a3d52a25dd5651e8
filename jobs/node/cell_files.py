"""The files of one attempt of a cell: what the node writes, and reads of a probe's."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.contract import Phase, ProbeRequest, to_json

LOG_TAIL_CHARS = 4000
BYTES_PER_CHAR = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFiles:
    folder: Path

    @property
    def request(self) -> Path:
        return self.folder / "request.json"

    @property
    def report(self) -> Path:
        return self.folder / "report.json"

    @property
    def phase(self) -> Path:
        return self.folder / "phase.json"

    @property
    def log(self) -> Path:
        return self.folder / "probe.log"

    def prepare(self, request: ProbeRequest) -> None:
        """Another try may have been here, of which a lost node did not get to tell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for stale in self.folder.iterdir():
            if stale.suffix in {".json", ".jsonl", ".log"}:
                stale.unlink()
        self.request.write_text(to_json(request))
        self.log.touch()

    def read_report(self) -> dict[str, Any] | None:
        """As the probe wrote it: the orchestrator checks it. Raises ValueError if it is torn."""
        if not self.report.exists():
            return None
        report = json.loads(self.report.read_bytes())
        if not isinstance(report, dict):
            raise ValueError("it holds no JSON object")  # noqa: TRY004 - the text is wrong
        return report

    def read_phase(self) -> Phase:
        try:
            return Phase(json.loads(self.phase.read_bytes())["phase"])
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return Phase.PREPARE


def tail(path: Path) -> str:
    """The end of a log that may be larger than memory, and may hold anything."""
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - LOG_TAIL_CHARS * BYTES_PER_CHAR))
        return log.read().decode(errors="replace")[-LOG_TAIL_CHARS:]
