"""
The process that probes are forked from: vLLM is imported, no device is touched.

It listens on a Unix socket of packets, each one JSON object. Whoever connects is told
{"host": pid}, sends one order

    {"request": path, "report": path, "log": path, "folder": path,
     "token": text, "env": {name: value or null}}

and is told {"pid": n, "started": ticks} when the cell is forked (or {"error": text} when
it can't be), then {"status": n}, as `waitpid` has it, when it ended. To close the
connection earlier is to end the cell.

The host ends when the process that it watches does, or when nobody needed it for a while.
"""

import argparse
import ctypes
import gc
import json
import os
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from jobs import processes
from jobs.probe import forked

PACKET = 65536
TICK_S = 0.5
BROKEN = 70
"""Exit code of a host or a cell that raised."""

_PR_SET_CHILD_SUBREAPER = 36

Run = Callable[[Path, Path], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    tree: processes.Tree
    connection: socket.socket
    exit_fd: int


class Host:
    """Has one thread, so that a fork copies the whole of it."""

    def __init__(
        self, run: Run, *, listener: socket.socket, watched_fd: int, marker: int, idle_s: float
    ) -> None:
        self._run = run
        self._marker = marker
        self._idle_s = idle_s
        self._needed_at = time.monotonic()
        self._is_watched_here = True
        self._cells: dict[int, Cell] = {}
        # Not epoll, whose state a forked cell would share with the host.
        self._selector = selectors.PollSelector()
        self._wait_for(listener, self._accept)
        self._wait_for(watched_fd, self._watched_ended)

    def serve(self) -> None:
        while self._is_watched_here and not self._is_idle():
            for key, _ in self._selector.select(TICK_S):
                key.data(key.fileobj)
            self._reap()
        for cell in self._cells.values():
            processes.end_all(cell.tree, processes.AT_ONCE)

    def _is_idle(self) -> bool:
        if self._cells:
            self._needed_at = time.monotonic()
        return time.monotonic() - self._needed_at > self._idle_s

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._wait_for(connection, self._receive)
        self._needed_at = time.monotonic()
        _tell(connection, {"host": os.getpid()})

    def _watched_ended(self, _: int) -> None:
        self._is_watched_here = False

    def _receive(self, connection: socket.socket) -> None:
        try:
            packet = connection.recv(PACKET)
        except ConnectionError:
            packet = b""
        if packet:
            self._fork(json.loads(packet), connection)
        else:
            self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        for cell in self._cells.values():
            if cell.connection is connection:
                processes.end_all(cell.tree, processes.AT_ONCE)
        self._selector.unregister(connection)
        connection.close()

    def _fork(self, order: dict[str, Any], connection: socket.socket) -> None:
        host = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _tell(connection, {"error": f"no new process: {error}"})
            return
        if pid == 0:
            self._become_cell(order, host)
        leader = processes.identify(pid)
        tree = processes.Tree(token=order["token"], leader=leader)
        self._cells[pid] = Cell(tree=tree, connection=connection, exit_fd=os.pidfd_open(pid))
        self._wait_for(self._cells[pid].exit_fd, _only_wake)
        _tell(connection, {"pid": pid, "started": leader.started})

    def _become_cell(self, order: dict[str, Any], host: int) -> NoReturn:
        code = BROKEN
        try:
            for key in self._selector.get_map().values():
                os.close(key.fd)
            forked.become_cell(order, host=host, marker=self._marker)
            self._run(Path(order["request"]), Path(order["report"]))
            code = 0
        # Whatever it is, the fork must not go on as a second host.
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        """Also what cells orphaned: the host adopts it, so that no zombie stays."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if cell := self._cells.pop(pid, None):
                    self._selector.unregister(cell.exit_fd)
                    os.close(cell.exit_fd)
                    _tell(cell.connection, {"status": status})

    def _wait_for(self, source: Any, callback: Callable[[Any], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, callback)


def main() -> None:
    options = _options()
    tell_ready = _leave_the_starter() if options.shared else None
    marker = forked.marker_address()
    watched_fd = _watch(options.watched, options.watched_started)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    from jobs.probe import cell

    with _gone_with(watched_fd):
        cell.preload()
    gc.collect()
    # What the collector never looks at is never written to, and stays shared with the cells.
    gc.freeze()
    listener = _listen(options.socket)
    if tell_ready is not None:
        os.write(tell_ready, b"1")
        os.close(tell_ready)
    Host(
        cell.run,
        listener=listener,
        watched_fd=watched_fd,
        marker=marker,
        idle_s=options.idle_s,
    ).serve()
    options.socket.unlink(missing_ok=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("socket", type=Path)
    parser.add_argument("--watched", type=int, required=True)
    parser.add_argument("--watched-started", type=int, required=True)
    parser.add_argument("--idle-s", type=float, required=True)
    parser.add_argument("--shared", action="store_true", help="outlive the starter")
    return parser.parse_args()


def _leave_the_starter() -> int:
    """
    Go on in a child. The parent exits with 0 once the host is ready, or as the host did
    if that died before: a Ray worker ends its children when it goes, but not their children.
    """
    ready, tell_ready = os.pipe()
    host = os.fork()
    if host == 0:
        os.close(ready)
        return tell_ready
    os.close(tell_ready)
    if os.read(ready, 1):
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(host, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def _watch(pid: int, started: int) -> int:
    descriptor = os.pidfd_open(pid)
    if processes.identify(pid) != processes.Process(pid=pid, started=started):
        raise ProcessLookupError(f"process {pid}, which the host serves, is gone")
    return descriptor


@contextmanager
def _gone_with(watched_fd: int) -> Iterator[None]:
    """Importing takes long, and may hang: until the host serves, a timer looks after it."""

    def look(_: int, __: object) -> None:
        if select.select([watched_fd], [], [], 0)[0]:
            os._exit(1)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _listen(path: Path) -> socket.socket:
    """Under another name first: who sees the socket can connect to it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    unfinished = path.with_suffix(f".{os.getpid()}")
    listener.bind(str(unfinished))
    listener.listen(socket.SOMAXCONN)
    unfinished.rename(path)
    return listener


def _tell(connection: socket.socket, message: Mapping[str, int | str]) -> None:
    with suppress(OSError):  # it hung up, which the next round of the loop sees
        connection.send(json.dumps(message).encode())


def _only_wake(_: int) -> None:
    """Ended cells are reaped after every round."""


if __name__ == "__main__":
    main()
