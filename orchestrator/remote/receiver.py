"""Parcels unpacked, one after the other, into a directory like the one that they come from."""

import base64
import json
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.remote.parcels import (
    LARGEST_PARCEL,
    ORIGIN,
    Entry,
    Parcel,
    ParcelError,
    from_text,
)


class Receiver:
    """Of the parcels of one sender. It goes on where an earlier one was interrupted."""

    def __init__(self, runs: Path, name: str) -> None:
        self._runs = runs
        self._file = runs / ".received" / f"{name}.json"
        state = _read(self._file)
        self.expected: int = state.get("expected", 0)
        """The number of the parcel that comes next."""

        self.is_complete: bool = state.get("is_complete", False)
        self.passed_over: int = state.get("passed_over", 0)
        """How many parcels were of no use; what was in them is not here."""

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
            file = _placed(self.run, path)
            if self.passed_over:
                _fill(file, entry.offset)
            _write(file, entry.offset, content)
        self.expected, self.is_complete = parcel.number + 1, parcel.is_last
        self._remember()

    def pass_over(self) -> None:
        """The parcel that comes next is of no use: go on with the one behind it."""
        self.expected += 1
        self.passed_over += 1
        self._remember()

    def _remember(self) -> None:
        self._file.parent.mkdir(exist_ok=True)
        state: dict[str, Any] = {
            "expected": self.expected,
            "is_complete": self.is_complete,
            "passed_over": self.passed_over,
        }
        if self.run is not None:
            state["run"] = self.run.name
        aside = self._file.with_suffix(".part")
        aside.write_text(json.dumps(state))
        aside.replace(self._file)


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


def _fill(file: Path, size: int) -> None:
    """Up to *size*, with empty lines for those that were passed over: no record is made of them."""
    if size:
        with file.open("ab") as there:
            there.write(b"\n" * min(size - there.tell(), LARGEST_PARCEL))


def _placed(run: Path, path: PurePosixPath) -> Path:
    file = run / path
    if not file.parent.resolve().is_relative_to(run.resolve()):
        raise ParcelError(f"{file.parent} leads out of {run}")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_symlink():
        file.unlink()
    return file


def _write(file: Path, offset: int, content: bytes) -> None:
    if offset:
        if not file.exists() or file.stat().st_size < offset:
            raise ParcelError(f"{file} lacks bytes that came before")
        with file.open("r+b") as there:
            there.truncate(offset)
            there.seek(offset)
            there.write(content)
    else:
        aside = file.with_name(f".{file.name}.part")
        aside.write_bytes(content)
        aside.replace(file)
