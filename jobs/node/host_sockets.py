"""How a node and a host speak with each other: packets of JSON, over a Unix socket."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs import processes

ANSWER_S = 60.0
"""A host answers at once; one that takes this long hangs, and is replaced."""

SLICE_S = 0.5
"""Of waiting: Ray cancels a task with a note to Python, which wakes no system call."""

PACKET = 65536


def connect(path: Path) -> socket.socket | None:
    """A connection on which the host has said that it is there. One that hangs is ended."""
    with contextlib.ExitStack() as undo:
        host = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        try:
            host.settimeout(ANSWER_S)
            host.connect(str(path))
            answer(host)
        except TimeoutError:
            _kill_peer(host)
            return None
        except OSError:
            return None
        # With a limit, Python itself waits for what is asked for without waiting.
        host.settimeout(None)
        undo.pop_all()
        return host


def answer(host: socket.socket) -> dict[str, Any]:
    """What a host says that is asked. Raises OSError: TimeoutError when it says nothing."""
    until = time.monotonic() + ANSWER_S
    while not select.select([host], [], [], SLICE_S)[0]:
        if time.monotonic() > until or processes.is_stopped(_peer(host)):
            raise TimeoutError
    return receive(host)


def receive(host: socket.socket) -> dict[str, Any]:
    """What a host has said. Raises OSError: BlockingIOError when it has said nothing."""
    packet = host.recv(PACKET, socket.MSG_DONTWAIT)
    if not packet:
        raise ConnectionResetError("the host closed the connection")
    message: dict[str, Any] = json.loads(packet)
    return message


def end(path: Path) -> None:
    """Kill the host that listens there, if there is one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as host:
        host.setblocking(False)
        with suppress(OSError):
            host.connect(str(path))
            _kill_peer(host)


def _kill_peer(host: socket.socket) -> None:
    pid = _peer(host)
    if pid > 0:  # it is 0 when it is in another space of ids
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _peer(host: socket.socket) -> int:
    """The process that listens, as it was when it began to."""
    size = struct.calcsize("3i")
    pid, _, _ = struct.unpack("3i", host.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(pid)
