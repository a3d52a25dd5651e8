"""
The way of a cell's output to its log: through a pipe, without secrets, and with an end.

However much an engine writes, of a log only the beginning and the end stay.
"""

import fcntl
import os
import select
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from jobs.node.errors import NodeError
from jobs.secrets import Redactor, Stream

HEAD = 4 * 2**20
TAIL = 4 * 2**20
"""Bytes that stay. What stands between them goes whenever it is as much as the tail."""

LONGEST_REMARK = 300
"""Bytes. What is cut before it is masked could end in half a secret."""

PIPE = 2**20
"""Bytes that an engine can write before it has to wait for the node."""


class CellLog:
    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.heard_at = time.monotonic()
        """When the cell wrote something last."""

        self._redactor = redactor
        self._stream = Stream(redactor)
        self._left_out = 0
        self._tail_at = HEAD
        self._file = path.open("w+b", buffering=0)
        # Its other end stays open here too: the last process of a cell may close it long
        # before it ends, and a pipe that nobody can write to is always ready to be read.
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        with suppress(PermissionError):  # this user has many pipes
            fcntl.fcntl(self.sink, fcntl.F_SETPIPE_SZ, PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.source)
        os.close(self.sink)
        self._file.close()

    def wait(self, seconds: float) -> None:
        """Until something has come, at most *seconds*."""
        source = select.poll()
        source.register(self.source, select.POLLIN)
        source.poll(seconds * 1000)

    def take(self) -> bytes:
        """Log what has come; what can be shown of it yet."""
        try:
            piece = os.read(self.source, PIPE)
        except BlockingIOError:
            return b""
        self.heard_at = time.monotonic()
        shown = self._stream.feed(piece)
        self._write(shown)
        return shown

    def take_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            self.wait(left_s)
            self.take()

    def finish(self) -> None:
        """Log what the pipe holds. Who could not be ended may go on writing to it for ever."""
        self.take()
        self._write(self._stream.rest())

    def say(self, line: str) -> None:
        """Log a remark of the node's, of which not more stays than one can read."""
        shown = self._redactor.bytes(line.encode())[:LONGEST_REMARK]
        self._write(b"[node] %b\n" % shown)

    def _write(self, shown: bytes) -> None:
        try:
            self._append(shown)
            if self._file.tell() > self._tail_at + 2 * TAIL:
                self._leave_out()
        except OSError as error:
            raise NodeError(f"{self._file.name} can't be written: {error.strerror}") from error

    def _append(self, shown: bytes) -> None:
        while shown:
            shown = shown[self._file.write(shown) :]

    def _leave_out(self) -> None:
        """All but the head and the tail."""
        tail_at = self._file.seek(-TAIL, os.SEEK_END)
        tail = self._file.read()
        self._left_out += tail_at - self._tail_at
        self._file.seek(HEAD)
        self._file.truncate()
        self._append(f"\n[node] {self._left_out} bytes are left out here\n".encode())
        self._tail_at = self._file.tell()
        self._append(tail)
