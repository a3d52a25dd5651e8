"""
A run directory, sent piece by piece.

Whoever runs the cells leaves *parcels* in a folder; whoever asked for them takes these in
their order, and has the same directory in the end. A parcel is a text file that never
changes: a line with its checksum, then what is new, compressed.
"""

import base64
import hashlib
import json
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import pydantic

from jobs.contract.terms import STRICT
from orchestrator.errors import ClusterError

EVERY_S = 2.0
LARGEST_FILE = 16 * 2**20
"""Bytes. Of a larger one the beginning and the end are sent."""

WHILE_RUNNING = 256 * 2**10
"""A file of a running cell is sent anew when it has changed, up to so many bytes."""

FULL = 8 * 2**20
LARGEST_PARCEL = 64 * 2**20
"""Bytes of content: of what a sender puts in, and of what a receiver believes."""

RECORDS = "records.jsonl"
ORIGIN = ".origin"
"""In a run directory and in what was received of it: which one it is, whatever its name."""

_HEAD = "vllm-matrix parcel 1"


class ParcelError(ClusterError):
    """What was received is no parcel, or not the one that comes next."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Bytes of a file, from *offset* to its new end."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    path: str
    offset: int
    content: str
    """Base64."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parcel:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    number: int
    run: str
    """The name of the run directory."""

    origin: str
    entries: tuple[Entry, ...]
    is_last: bool


_adapter = pydantic.TypeAdapter(Parcel)


def to_text(parcel: Parcel) -> str:
    packed = base64.encodebytes(zlib.compress(_adapter.dump_json(parcel), 6)).decode()
    return f"{_HEAD} {hashlib.sha256(packed.encode()).hexdigest()}\n{packed}"


def from_text(text: str) -> Parcel:
    """Raises ParcelError for whatever somebody else may have put there."""
    head, _, packed = text.partition("\n")
    if head != f"{_HEAD} {hashlib.sha256(packed.encode()).hexdigest()}":
        raise ParcelError("a parcel is torn, or none of this version of vllm-matrix")
    try:
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(base64.b64decode(packed), LARGEST_PARCEL)
        return _adapter.validate_json(content)
    except (ValueError, zlib.error) as error:
        raise ParcelError(f"a parcel can't be read: {' '.join(str(error).split())}") from error


class Sender:
    """Of one run. A folder that can't be written to costs parcels, never the run."""

    def __init__(self, run: Path, out: Path, name: str) -> None:
        """Parcels of *run* become `out/<name>-<number>.parcel`."""
        self._run = run
        self._out = out
        self._name = name
        self._number = 0
        self._records_sent = 0
        self._sent: dict[Path, tuple[int, int]] = {}
        """Size and time of change of each file as it was sent."""

        self._running: set[Path] = set()
        self._looked = 0.0
        self.trouble: str | None = None

    def look(self, submitted: Mapping[str, str]) -> None:
        """*submitted* are the folders of attempts that have not ended. Cheap to call."""
        if time.monotonic() - self._looked > EVERY_S:
            self._send(submitted, is_last=False)
            self._looked = time.monotonic()

    def close(self) -> None:
        """Nothing runs any more, also of what no look ever saw."""
        self._running |= {file.parent for file in (self._run / "cells").rglob("*.*")}
        self._send({}, is_last=True)

    def _send(self, submitted: Mapping[str, str], *, is_last: bool) -> None:
        try:
            # A cell's record must not come before what it was made of.
            records = self._new_records()
            entries = [*self._of_attempts({Path(folder) for folder in submitted.values()})]
            entries += [*self._of_run(), *records]
            parts = [*_parts(entries)] or ([[]] if is_last else [])
            for number, part in enumerate(parts, start=1):
                self._leave(part, is_last=is_last and number == len(parts))
        except OSError as error:
            self.trouble = f"{error.filename or self._out}: {error.strerror}"

    def _leave(self, entries: Iterable[Entry], *, is_last: bool) -> None:
        parcel = Parcel(
            number=self._number,
            run=self._run.name,
            origin=_origin(self._run),
            entries=tuple(entries),
            is_last=is_last,
        )
        there = self._out / f"{self._name}-{self._number:05}.parcel"
        aside = there.with_suffix(".part")
        aside.write_text(to_text(parcel))
        aside.replace(there)
        self._number += 1

    def _new_records(self) -> list[Entry]:
        """As far as whole lines go."""
        file = self._run / RECORDS
        if not file.exists():
            return []
        with file.open("rb") as records:
            records.seek(self._records_sent)
            new = records.read()
        whole = new[: new.rfind(b"\n") + 1]
        entry = _entry(RECORDS, whole, offset=self._records_sent)
        self._records_sent += len(whole)
        return [entry] if whole else []

    def _of_attempts(self, running: set[Path]) -> Iterator[Entry]:
        """Those that have ended since the last time are looked at for the last time."""
        for folder in sorted(self._running | running):
            most = WHILE_RUNNING if folder in running else LARGEST_FILE
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                for file in sorted(folder.iterdir()):
                    yield from self._changed(file, most, is_final=folder not in running)
        self._running = running

    def _of_run(self) -> Iterator[Entry]:
        for file in sorted(self._run.iterdir()):
            if file.name != RECORDS and not file.name.startswith(".") and file.suffix != ".lock":
                yield from self._changed(file, LARGEST_FILE, is_final=True)

    def _changed(self, file: Path, most: int, *, is_final: bool) -> Iterator[Entry]:
        if file.is_symlink() or not file.is_file():
            return
        found = file.stat()
        now = found.st_size, found.st_mtime_ns
        if self._sent.get(file) == now or (found.st_size > most and not is_final):
            return
        self._sent[file] = now
        yield _entry(file.relative_to(self._run).as_posix(), _shortened(file, most), offset=0)


class Receiver:
    """Of the parcels of one sender. It goes on where an earlier one was interrupted."""

    def __init__(self, runs: Path, name: str) -> None:
        self._runs = runs
        self._file = runs / ".received" / f"{name}.json"
        state = _read(self._file)
        self.expected: int = state.get("expected", 0)
        """The number of the parcel that comes next."""

        self.is_complete: bool = state.get("is_complete", False)
        self.run: Path | None = runs / state["run"] if "run" in state else None
        """The run directory here, once a parcel has told its name."""

    def take(self, text: str) -> None:
        """
        Unpack the parcel that comes next; one that was taken before is passed over.

        Raises ParcelError, before anything is written, for whatever is none.
        """
        parcel = from_text(text)
        if parcel.number < self.expected:
            return
        if parcel.number > self.expected:
            raise ParcelError(f"parcel {parcel.number} came before parcel {self.expected}")
        contents = [(_inside(entry.path), _decoded(entry)) for entry in parcel.entries]
        self.run = self.run or _home_of(self._runs, parcel)
        for entry, (path, content) in zip(parcel.entries, contents, strict=True):
            _write(self.run, path, entry.offset, content)
        self.expected, self.is_complete = parcel.number + 1, parcel.is_last
        self._remember()

    def _remember(self) -> None:
        assert self.run is not None
        self._file.parent.mkdir(exist_ok=True)
        state = {
            "expected": self.expected,
            "is_complete": self.is_complete,
            "run": self.run.name,
        }
        aside = self._file.with_suffix(".part")
        aside.write_text(json.dumps(state))
        aside.replace(self._file)


def _entry(path: str, content: bytes, *, offset: int) -> Entry:
    return Entry(path=path, offset=offset, content=base64.b64encode(content).decode())


def _parts(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """As few parcels as carry them."""
    part: list[Entry] = []
    size = 0
    for entry in entries:
        if part and size + len(entry.content) > FULL:
            yield part
            part, size = [], 0
        part.append(entry)
        size += len(entry.content)
    if part:
        yield part


def _shortened(file: Path, most: int) -> bytes:
    with file.open("rb") as content:
        size = file.stat().st_size
        if size <= most:
            return content.read(most)
        half = most // 2
        begin = content.read(half)
        content.seek(-half, 2)
        left_out = f"\n... {size - 2 * half} bytes are left out here ...\n".encode()
        return begin + left_out + content.read(half)


def _origin(run: Path) -> str:
    file = run / ORIGIN
    if not file.exists():
        file.write_text(uuid.uuid4().hex)
    return file.read_text()


def _read(file: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return state


def _inside(path: str) -> PurePosixPath:
    """Raises ParcelError for a path that leads elsewhere, or to a file that is not sent."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or "\0" in path or any(p.startswith(".") for p in parts):
        raise ParcelError(f"a parcel has a file that is none of a run directory: {path!r}")
    return PurePosixPath(path)


def _decoded(entry: Entry) -> bytes:
    try:
        return base64.b64decode(entry.content, validate=True)
    except ValueError as error:
        raise ParcelError(f"a parcel can't be read: {entry.path}: {error}") from error


def _home_of(runs: Path, parcel: Parcel) -> Path:
    """The folder of that name, or, where that is another run, of the next one that is free."""
    name = _inside(parcel.run)
    if len(name.parts) != 1:
        raise ParcelError(f"a parcel has a run of an impossible name: {parcel.run!r}")
    number = 1
    while True:
        folder = runs / (parcel.run if number == 1 else f"{parcel.run}-{number}")
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ORIGIN).write_text(parcel.origin)
        with suppress(OSError):
            if (folder / ORIGIN).read_text() == parcel.origin:
                return folder
        number += 1


def _write(run: Path, path: PurePosixPath, offset: int, content: bytes) -> None:
    file = run / path
    if not file.parent.resolve().is_relative_to(run.resolve()):
        raise ParcelError(f"{file.parent} leads out of {run}")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        file.unlink()
    if offset:
        if not file.exists() or file.stat().st_size < offset:
            raise ParcelError(f"{file} lacks bytes that came before: remove {run}, and attach")
        with file.open("r+b") as there:
            there.truncate(offset)
            there.seek(offset)
            there.write(content)
    else:
        aside = file.with_name(f".{file.name}.part")
        aside.write_bytes(content)
        aside.replace(file)
