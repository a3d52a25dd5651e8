"""
The files of one attempt of a cell: what the node writes, and reads of a probe's.

An engine can do anything to them: put a pipe, a folder or gigabytes in their place.
"""

import dataclasses
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from jobs.contract.asked import ProbeRequest
from jobs.contract.terms import Phase
from jobs.secrets import Redactor

WRITTEN = (".json", ".jsonl")
LOG_TAIL_CHARS = 4000
BYTES_PER_CHAR = 4
LARGEST_REPORT = 64 * 2**20
"""Bytes. A report of thousands of layers has one or two million."""


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
    def memory(self) -> Path:
        return self.folder / "memory.json"

    @property
    def log(self) -> Path:
        return self.folder / "probe.log"

    def prepare(self, request: ProbeRequest, redactor: Redactor) -> None:
        """Another try may have been here, of which a lost node did not get to tell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for stale in self.folder.iterdir():
            if stale.suffix in {*WRITTEN, ".log"}:
                stale.unlink()
        shown = redactor.value(dataclasses.asdict(request))
        self.request.write_text(json.dumps(shown, indent=1))
        self.log.touch()

    def redact(self, redactor: Redactor) -> None:
        """What the cell's processes left, which may hold anything."""
        for file in self.folder.iterdir():
            if file.suffix in WRITTEN:
                with suppress(ValueError, IsADirectoryError):
                    _redact(file, redactor)

    def read_report(self) -> dict[str, Any] | None:
        """As the probe wrote it: the orchestrator checks it. Raises ValueError if it is torn."""
        try:
            report = json.loads(_read(self.report))
        except FileNotFoundError:
            return None
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not isinstance(report, dict):
            raise ValueError("it holds no JSON object")  # noqa: TRY004 - the text is wrong
        return report

    def read_phase(self) -> Phase:
        try:
            return Phase(json.loads(_read(self.phase))["phase"])
        except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            return Phase.PREPARE

    def read_memory_mib(self) -> int:
        """What the probe had of its own at its end; 0 if it did not get there."""
        try:
            said = json.loads(_read(self.memory))["own_mib"]
        except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            return 0
        return said if isinstance(said, int) else 0


def tail(path: Path) -> str:
    """The end of a log that may be larger than memory, and may hold anything."""
    try:
        with _opened(path) as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - LOG_TAIL_CHARS * BYTES_PER_CHAR))
            return log.read().decode(errors="replace")[-LOG_TAIL_CHARS:]
    except (FileNotFoundError, ValueError) as error:
        return f"the log can't be read: {error}"


def _redact(file: Path, redactor: Redactor) -> None:
    content = _read(file)
    shown = _shown(content, redactor)
    if shown != content:
        temporary = file.with_name(f".{file.name}")
        temporary.write_bytes(shown)
        temporary.replace(file)


def _shown(content: bytes, redactor: Redactor) -> bytes:
    try:
        found = json.loads(content)
        shown = redactor.value(found)
    except (ValueError, RecursionError):  # several lines, or something else altogether
        return redactor.bytes(content)
    return content if shown == found else json.dumps(shown, indent=1).encode()


def _read(path: Path) -> bytes:
    with _opened(path) as file:
        content = file.read(LARGEST_REPORT + 1)
    if len(content) > LARGEST_REPORT:
        raise ValueError(f"it is larger than {LARGEST_REPORT >> 20} MiB")
    return content


def _opened(path: Path) -> BufferedReader:
    """Raises ValueError if it is no file: opening a pipe would wait for somebody to write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path.name} is no regular file")
    return os.fdopen(descriptor, "rb")
