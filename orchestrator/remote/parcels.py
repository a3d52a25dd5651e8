"""
A run directory, sent piece by piece.

Whoever runs the cells leaves *parcels* in a folder; whoever asked for them takes these in
their order, and has the same directory in the end. A parcel is a text file that never
changes: a line with its checksum, then what is new, compressed.
"""

import base64
import hashlib
import zlib
from dataclasses import dataclass
from typing import Any, ClassVar

import pydantic

from jobs.contract.terms import STRICT
from orchestrator.errors import ClusterError

LARGEST_PARCEL = 64 * 2**20
"""Bytes of content: of what a sender puts in, and of what a receiver believes."""

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
