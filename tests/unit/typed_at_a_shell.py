"""Keys pressed at a real shell on a terminal of its own, and whether it shows something then."""

import os
import pty
import select
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

CLEARED = "\x15"
"""Ctrl-U: what is typed is gone."""

READY = "ready-for-words>"
QUIET_S = 0.6
PATIENCE_S = 30.0


class Shell:
    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._unread = ""

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def shows(self, text: str) -> bool:
        """Whether *text* comes; what came before it counts no more."""
        end = time.monotonic() + PATIENCE_S
        while text not in self._unread and time.monotonic() < end:
            if select.select([self._terminal], [], [], QUIET_S)[0]:
                self._unread += os.read(self._terminal, 65536).decode(errors="replace")
        _, found, self._unread = self._unread.partition(text)
        return bool(found)


@contextmanager
def shell(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Shell]:
    pid, terminal = pty.fork()
    if pid == 0:
        # Lines that do not fit are shown in part.
        termios.tcsetwinsize(0, (50, 200))
        os.chdir(folder)
        os.execvpe(command[0], [*command], {**os.environ, **environment, "TERM": "dumb"})
    try:
        yield Shell(terminal)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
