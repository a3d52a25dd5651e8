"""The records of a run: one line per cell that ended, only ever appended."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from jobs.secrets import redactor
from orchestrator.concluded.judge import not_run
from orchestrator.concluded.record import Record
from orchestrator.errors import ClusterError
from orchestrator.taxonomy import taxonomy

Part = TypeVar("Part")

_adapter = pydantic.TypeAdapter(Record)


@dataclass(frozen=True, kw_only=True, slots=True)
class Damaged:
    """A line that is no record of this version of vllm-matrix."""

    place: str
    cell_id: str | None
    """As far as it can be read; the cell then runs again."""

    why: str

    def __str__(self) -> str:
        return f"{self.place} is no record of this version of vllm-matrix: {self.why}"


class RecordFile:
    """`records.jsonl`: one writer, each line on disk before the next cell is counted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.redactor = redactor({"here": os.environ})
        """What may not be shown; the run that writes here adds what it was given."""

    def append(self, *records: Record) -> None:
        try:
            self._append("".join(self._lines(records)).encode())
        except OSError as error:
            raise ClusterError(
                f"the record of {records[0].cell_id} can't be written to {self.path}: "
                f"{error.strerror}."
                " What is recorded so far is kept; make room and run the same command again."
            ) from error

    def _lines(self, records: Sequence[Record]) -> Iterator[str]:
        # All at once, since they say much the same.
        dumped = [_adapter.dump_python(record, mode="json") for record in records]
        for shown in self.redactor.value(dumped):
            yield json.dumps(shown, separators=(",", ":")) + "\n"

    def _append(self, lines: bytes) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            end = _end_of_last_line(descriptor)
            os.ftruncate(descriptor, end)
            try:
                _write_all(descriptor, lines)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)

    def __iter__(self) -> Iterator[Record]:
        """A damaged line counts as a cell that was not run, so that nothing ships by it."""
        for line in self.lines():
            if isinstance(line, Record):
                yield line
            elif line.cell_id is not None:
                damage = f"{line}. The same command runs the cell again."
                yield Record(cell_id=line.cell_id, judgement=not_run(damage))

    def lines(self) -> "tuple[Record | Damaged, ...]":
        """Every whole line. A torn last line (a writer was killed) was never a record."""
        with self._readable():
            if not self.path.exists():
                return ()
            now = self.path.stat()
            return _lines(self.path, (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns))

    def lines_of(self, wanted: Callable[[str], bool]) -> Iterator[Record | Damaged]:
        """Only of such cells, by their ids, and what names no cell; the rest is not checked."""
        with self._readable():
            lines = _whole_lines(self.path) if self.path.exists() else []
        for number, line in enumerate(lines, start=1):
            named = _cell_named_in(line)
            if named is None or wanted(named):
                yield _read(line, f"line {number} of {self.path}")

    def parts(self, adapter: pydantic.TypeAdapter[Part]) -> Iterator[Part]:
        """Of every line that has it: the part that *adapter* takes, and no check of the rest."""
        with self._readable():
            lines = _whole_lines(self.path) if self.path.exists() else []
        for line in lines:
            with contextlib.suppress(pydantic.ValidationError):
                yield adapter.validate_json(line)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ClusterError(f"{self.path} can't be read: {error.strerror}") from error


@lru_cache(maxsize=2)
def _lines(path: Path, _version: tuple[int, ...]) -> tuple[Record | Damaged, ...]:
    """One stage after the other reads the same file: it is checked once while nothing changes."""
    lines = enumerate(_whole_lines(path), start=1)
    return tuple(_read(line, f"line {number} of {path}") for number, line in lines)


def _whole_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def _read(line: bytes, place: str) -> Record | Damaged:
    try:
        return _adapter.validate_json(line)
    except pydantic.ValidationError as invalid:
        why = invalid.errors()[0]["msg"]
        return Damaged(place=place, cell_id=_cell_named_in(line), why=why)


@cache
def words(adapter: pydantic.TypeAdapter[Any] = _adapter) -> frozenset[str]:
    """Those of ours in what *adapter* writes: members of enumerations, literals, categories."""
    return frozenset({*_named_in(adapter.json_schema()), *taxonomy().categories})


def _named_in(schema: Any) -> Iterator[str]:
    match schema:
        case {"const": str(word)}:
            yield word
        case {"enum": [*members]}:
            yield from members
        case dict():
            yield from _named_in([*schema.values()])
        case list():
            for part in schema:
                yield from _named_in(part)
        case _:
            pass


_CELL_ID = re.compile(rb'"cell_id": ?"([^"\\]+)"')


def _cell_named_in(line: bytes) -> str | None:
    named = _CELL_ID.search(line)
    return None if named is None else named[1].decode(errors="replace")


def _write_all(descriptor: int, lines: bytes) -> None:
    """A full disk takes a part first and says so only on the next call."""
    while lines:
        lines = lines[os.write(descriptor, lines) :]


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
