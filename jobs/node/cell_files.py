"""
The files of one attempt of a cell: what the node writes, and reads of a probe's.

An engine can do anything to them: put a pipe, a folder or gigabytes in their place.
"""

import dataclasses
import errno
import json
import os
import shutil
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

OF_THE_FILE = {errno.EACCES, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EPERM}
"""What a cell can make of its files; a full or broken disk is the node's fault."""

NOT_AS_WRITTEN = (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError)
"""How a file that is absent, torn or of another shape shows when it is read."""


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
                _remove(stale)
        shown = redactor.value(dataclasses.asdict(request))
        self.request.write_text(json.dumps(shown, indent=1))
        self.log.touch()

    def withdraw_request(self) -> None:
        """From now on there is one only once a node has begun with the attempt."""
        with suppress(OSError):  # the node will say so
            _remove(self.request)

    def redact(self, redactor: Redactor) -> tuple[str, ...]:
        """What the cell's processes left, which may hold anything. Says which could not stay."""
        said = (_redact(file, redactor) for file in self._written())
        return tuple(filter(None, said))

    def _written(self) -> list[Path]:
        """None where the cell has removed its folder, or locked it."""
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            return [file for file in self.folder.iterdir() if file.suffix in WRITTEN]
        return []

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
        except NOT_AS_WRITTEN:
            return Phase.PREPARE

    def read_memory_mib(self) -> int:
        """What the probe had of its own at its end; 0 if it did not get there."""
        try:
            said = json.loads(_read(self.memory))["own_mib"]
        except NOT_AS_WRITTEN:
            return 0
        return said if isinstance(said, int) else 0


def tail(path: Path, chars: int = LOG_TAIL_CHARS) -> str:
    """The end of a log that may be larger than memory, and may hold anything."""
    try:
        with _opened(path) as log:
            size = log.seek(0, os.SEEK_END)
            begin = log.seek(max(0, size - chars * BYTES_PER_CHAR))
            text = log.read().decode(errors="replace")
    except (FileNotFoundError, ValueError) as error:
        return f"the log can't be read: {error}"
    end = text[-chars:]
    is_whole = begin == 0 and end == text
    # Half a line may begin with half a secret.
    return end if is_whole else end.partition("\n")[2] or end


def _redact(file: Path, redactor: Redactor) -> str | None:
    try:
        content = _read(file)
        shown = _shown(content, redactor)
        if shown != content:
            temporary = file.with_name(f".{file.name}")
            temporary.write_bytes(shown)
            temporary.replace(file)
    except FileNotFoundError:  # a link to nowhere, or gone by now
        return None
    except (ValueError, PermissionError) as error:
        return _removed(file, error) if file.is_file() else None
    return None


def _removed(file: Path, error: Exception) -> str:
    try:
        file.unlink()
    except PermissionError:
        return f"{file.name} may hold secrets, and can't be removed: {error}"
    return f"{file.name} was removed, since it may hold secrets: {error}"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in OF_THE_FILE:
            raise ValueError(f"{path.name} can't be opened: {error.strerror}") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path.name} is no regular file")
    return os.fdopen(descriptor, "rb")
