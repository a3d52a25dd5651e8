"""The records of a run: one line per cell that ended, only ever appended."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic

from jobs.contract import STRICT, Attempt, ProvisionedBuild
from orchestrator.errors import ClusterError
from orchestrator.judge import Judgement, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """The last word on one cell: asked (by id and digest), seen, concluded."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cell_id: str
    digest: str = ""
    """Of the cell and its build: the same digest need not be tried again. Empty: never tried."""

    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    build: ProvisionedBuild | None = None
    attempt: Attempt | None = None
    earlier: tuple[str, ...] = ()
    """Why earlier attempts of this run did not count, in order."""

    judgement: Judgement
    record_version: Literal[1] = 1

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict


_adapter = pydantic.TypeAdapter(Record)
_attempt_adapter = pydantic.TypeAdapter(Attempt)
_build_adapter = pydantic.TypeAdapter(ProvisionedBuild)


def read_attempt(text: str) -> Attempt:
    """Check what a node sent. Raises pydantic.ValidationError."""
    return _attempt_adapter.validate_json(text)


def read_build(text: str) -> ProvisionedBuild:
    return _build_adapter.validate_json(text)


class RecordFile:
    """`records.jsonl`: one writer, each line on disk before the next cell is counted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Record) -> None:
        line = json.dumps(_adapter.dump_python(record, mode="json"), separators=(",", ":")) + "\n"
        try:
            self._append(line.encode())
        except OSError as error:
            raise ClusterError(
                f"the record of {record.cell_id} can't be written to {self.path}: {error.strerror}."
                " What is recorded so far is kept; make room and run the same command again."
            ) from error

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            end = _end_of_last_line(descriptor)
            os.ftruncate(descriptor, end)
            try:
                _write_all(descriptor, line)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)

    def __iter__(self) -> Iterator[Record]:
        """Every whole line. A torn last line (a writer was killed) was never a record."""
        try:
            text = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise ClusterError(f"{self.path} can't be read: {error.strerror}") from error
        for line in text.split(b"\n")[:-1]:
            try:
                yield _adapter.validate_json(line)
            except pydantic.ValidationError as invalid:
                raise ClusterError(
                    f"{self.path} holds a line that is no record of this version of vllm-matrix: "
                    f"{invalid.errors()[0]['msg']}. Move the run directory away and run again."
                ) from None


def _write_all(descriptor: int, line: bytes) -> None:
    """A full disk takes a part first and says so only on the next call."""
    while line:
        line = line[os.write(descriptor, line) :]


def _end_of_last_line(descriptor: int) -> int:
    """Where the last whole line ends: a torn one behind it is cut off before appending."""
    size = os.fstat(descriptor).st_size
    block = 1 << 16
    position = size
    while position > 0:
        start = max(0, position - block)
        newline = os.pread(descriptor, position - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        position = start
    return 0
