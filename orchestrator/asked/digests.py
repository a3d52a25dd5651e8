"""What decides what a cell does, hashed: the same parts need not be tried again."""

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.asked.config import Backend, Hardware, Model

SHIPPED = "shipped:"
PROBE_CODE = Path(__file__).parents[2] / "jobs"
MODELS = PROBE_CODE / "models"


class _Itself:
    """An entry of an axis, by identity: it never changes, and what it holds has no hash."""

    __slots__ = ("entry",)

    def __init__(self, entry: Any) -> None:
        self.entry = entry

    def __hash__(self) -> int:
        return id(self.entry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.entry is self.entry


def of_hardware(hardware: Hardware) -> str:
    return _of_hardware(_Itself(hardware))


def of_model(model: Model) -> str:
    return _of_model(_Itself(model))


def of_model_files(model: Model) -> str:
    """Of the configurations that decide which model is built."""
    return _of_model_files(_Itself(model))


def of_backend(backend: Backend) -> str:
    return _of_backend(_Itself(backend))


@cache
def of_word(word: str) -> str:
    return hashed(word)


def hashed(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def of_probe() -> str:
    """Of our code that an engine meets: another probe may see, or pretend, other things."""
    digest = hashlib.sha256()
    for file in sorted([*PROBE_CODE.glob("probe/**/*.py"), *PROBE_CODE.glob("contract/*.py")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return hashed(digest.hexdigest())


@cache
def _of_hardware(this: _Itself) -> str:
    return hashed(dataclasses.asdict(this.entry) | {"source": None})


@cache
def _of_model(this: _Itself) -> str:
    return hashed(dataclasses.asdict(this.entry) | {"memory_gib": None})


@cache
def _of_backend(this: _Itself) -> str:
    return hashed(dataclasses.asdict(this.entry) | {"vendors": None})


@cache
def _of_model_files(this: _Itself) -> str:
    model = this.entry
    paths = [model.path]
    if model.speculative and isinstance(model.speculative.get("model"), str):
        paths.append(model.speculative["model"])
    return hashed({path: digest for path in paths if (digest := _folder_digest(_folder(path)))})


def _folder(path: str) -> Path:
    return MODELS / path.removeprefix(SHIPPED) if path.startswith(SHIPPED) else Path(path)


def _folder_digest(folder: Path) -> str | None:
    """Of the small files only: weights are named by their path, not read."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("*.json"), *folder.glob("*.py")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
