"""
The runner of GitHub's jobs: it reads along, for commands, and shows what is left in a file.

VLLM_MATRIX_GITHUB=off in the environment keeps us from speaking to it.
"""

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SWITCH = "VLLM_MATRIX_GITHUB"
OFF = {"off", "0", "false", "no"}

Level = Literal["error", "warning", "notice"]
TITLE_CHARS = 200
MESSAGE_CHARS = 4000

CATCH_UP_S = 0.1
"""It reads our two streams each in its own time, and must have heard all that it shall not obey."""

_deaf_until: list[str] = []
"""The word that ends its deafness, while it is deaf."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    file: str
    """Below the job's workspace."""

    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    level: Level
    title: str
    message: str
    place: Place | None = None


def is_there() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def listens() -> bool:
    return is_there() and os.environ.get(SWITCH, "").lower() not in OFF


def workspace() -> Path:
    return Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())


def summary() -> Path | None:
    """Where the step's summary goes, behind what is in it."""
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(named) if named else None


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Whatever an engine says, in a log or in a report, the runner does not obey it."""
    if not is_there():
        yield
        return
    word, process = f"vllm-matrix-{secrets.token_hex(8)}", os.getpid()
    _say(f"::stop-commands::{word}\n")
    _deaf_until.append(word)
    try:
        yield
    finally:
        _deaf_until.remove(word)
        # A supervisor outlives the run that it forked, and whatever that leaves behind.
        if os.getpid() == process:
            _let_it_catch_up()
            _say(f"::{word}::\n")


def annotate(annotations: Iterable[Annotation]) -> None:
    """All at once, so that nothing of an engine's comes between."""
    commands = to_commands(annotations)
    for word in _deaf_until:
        _let_it_catch_up()
        commands = f"::{word}::\n{commands}::stop-commands::{word}\n"
    _say(commands)


def to_commands(annotations: Iterable[Annotation]) -> str:
    """As it takes them from a log."""
    return "".join(map(_command, annotations))


def _command(annotation: Annotation) -> str:
    place = annotation.place
    properties = {} if place is None else {"file": place.file, "line": str(place.line)}
    properties["title"] = annotation.title[:TITLE_CHARS]
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{annotation.level} {said}::{_data(annotation.message[:MESSAGE_CHARS])}\n"


def _data(text: str) -> str:
    """One command is one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _let_it_catch_up() -> None:
    sys.stdout.flush()
    time.sleep(CATCH_UP_S)


def _say(text: str) -> None:
    """To where no report goes that is meant for a file or a pipe."""
    sys.stderr.write(text)
    sys.stderr.flush()
