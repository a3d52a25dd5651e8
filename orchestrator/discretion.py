"""What this process says to anybody: no secret that it knows by then, no order to a terminal."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from jobs.secret_shapes import named
from jobs.secrets import redactor

_ORDERS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""To clear the screen, to set a colour or a title."""

_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Also what makes text run backwards."""


class Discreet(TextIOWrapper):
    """A stream to people. A print, a line of a log and a traceback never tear a value apart."""

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors="replace",
            line_buffering=stream.line_buffering,
        )
        # It would close the buffer when it goes.
        self._origin = stream
        self.redactor = redactor(os.environ)

    def write(self, text: str) -> int:
        with self._while_somebody_reads():
            super().write(self.redactor.text(text))
        return len(text)

    def flush(self) -> None:
        with self._while_somebody_reads():
            super().flush()

    @contextmanager
    def _while_somebody_reads(self) -> Iterator[None]:
        """Whoever reads may leave: the work goes on, and its exit code counts."""
        try:
            yield
        except BrokenPipeError:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())


def begin() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            setattr(sys, name, Discreet(stream))


def hide(holders: Mapping[str, Any], names: Iterable[str] = (), words: Iterable[str] = ()) -> None:
    """
    From now on, whatever *holders* has under names that speak of secrets, or are of *names*.
    *words* stay, whatever has the same value.
    """
    further = redactor({"environment": os.environ, **holders}, names, words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Discreet):
            stream.redactor |= further


def hide_typed(words: Iterable[str]) -> None:
    """The secrets of a command line, which may be wrong in any way."""
    words = [*words]
    pairs = [word.partition("=")[::2] for word in words]
    pairs += [pair for word in words for pair in named(word)]
    names = [name for key, value in pairs if key == "secrets" for name in re.findall(r"\w+", value)]
    hide({"typed": [{name: value} for name, value in pairs]}, names)


def plain(text: Any) -> Any:
    """Of somebody else's text, or of all text in a structure: nothing that a terminal obeys."""
    match text:
        case str():
            lines = _ORDERS.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
            return _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", lines)
        case dict():
            return {plain(key): plain(value) for key, value in text.items()}
        case list():
            return [*map(plain, text)]
        case _:
            return text
