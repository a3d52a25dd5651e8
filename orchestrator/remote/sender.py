"""What a run leaves, put into parcels while it goes on."""

import base64
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.remote.parcels import ORIGIN, Entry, Parcel, to_text

EVERY_S = 2.0
LARGEST_FILE = 16 * 2**20
"""Bytes. Of a larger one the beginning and the end are sent."""

WHILE_RUNNING = 256 * 2**10
"""A file of a running cell is sent anew when it has changed, up to so many bytes."""

FULL = 8 * 2**20
RECORDS = "records.jsonl"


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
