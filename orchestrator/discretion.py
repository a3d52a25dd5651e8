"""What this process says to anybody, less the secrets that it knows by then."""

import os
import sys
from collections.abc import Iterable, Mapping
from io import TextIOWrapper
from typing import Any

from jobs.secrets import redactor


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
        super().write(self.redactor.text(text))
        return len(text)


def begin() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            setattr(sys, name, Discreet(stream))


def hide(holders: Mapping[str, Any], names: Iterable[str] = ()) -> None:
    """From now on, whatever *holders* has under names that speak of secrets, or are of *names*."""
    further = redactor({"environment": os.environ, **holders}, names)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Discreet):
            stream.redactor |= further
