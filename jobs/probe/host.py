"""
The process that probes are forked from: vLLM is imported, no device is touched.

It listens on a Unix socket of packets, each one JSON object. Whoever connects is told
{"host": pid}, sends one order

    {"request": path, "report": path, "folder": path, "token": text,
     "env": {name: value or null}}

together with the descriptor that the cell is to write its output to, and hears from the
cell's keeper after that: {"keeper": process, "cell": process} when the cell is forked (or
{"error": text} when it can't be), then {"status": n}, as `waitpid` has it, when it ended.
To close the connection is to end the cell.

The host ends when the process that it watches does, or when nobody needed it for a while.
"""

import argparse
import gc
import json
import os
import select
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import processes
from jobs.probe import forked
from jobs.probe.keeper import keep, tell

PACKET = 65536
TICK_S = 0.5
STRAYS_S = 5.0
"""For what was killed to be gone, while everybody else waits."""
Run = Callable[[Path, Path], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Keeper:
    connection: socket.socket
    ended: int
    """A descriptor that becomes readable when it has."""


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
        self._keepers: dict[int, Keeper] = {}
        # Not epoll, whose state a fork would share with the host.
        self._selector = selectors.PollSelector()
        self._wait_for(listener, self._accept)
        self._wait_for(watched_fd, self._watched_ended)

    def serve(self) -> None:
        """Keepers end what they have when the host does."""
        while self._is_watched_here and not self._is_idle():
            for key, _ in self._selector.select(TICK_S):
                key.data(key.fileobj)
            self._reap()

    def _is_idle(self) -> bool:
        if self._keepers:
            self._needed_at = time.monotonic()
        return time.monotonic() - self._needed_at > self._idle_s

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._wait_for(connection, self._receive)
        self._needed_at = time.monotonic()
        tell(connection, {"host": os.getpid()})

    def _watched_ended(self, _: int) -> None:
        self._is_watched_here = False

    def _receive(self, connection: socket.socket) -> None:
        try:
            packet, logs, _, _ = socket.recv_fds(connection, PACKET, 1)
        except ConnectionError:
            packet, logs = b"", []
        if packet:
            self._serve(json.loads(packet), logs[0], connection)
        else:
            self._hang_up(connection)
        for log in logs:
            os.close(log)

    def _hang_up(self, connection: socket.socket) -> None:
        """Its keeper heard it as well, unless somebody stopped it."""
        for pid, keeper in self._keepers.items():
            if keeper.connection is connection:
                os.kill(pid, signal.SIGCONT)
        self._selector.unregister(connection)
        connection.close()

    def _serve(self, order: dict[str, Any], log: int, connection: socket.socket) -> None:
        try:
            pid = forked.fork(lambda: self._become_keeper(order, log, connection))
        except OSError as error:
            tell(connection, {"error": f"no new process: {error}"})
            return
        keeper = Keeper(connection=connection, ended=os.pidfd_open(pid))
        self._keepers[pid] = keeper
        self._wait_for(keeper.ended, _only_wake)

    def _become_keeper(self, order: dict[str, Any], log: int, connection: socket.socket) -> None:
        for key in self._selector.get_map().values():
            if key.fileobj is not connection:
                os.close(key.fd)
        keeper = os.getpid()

        def run_cell() -> None:
            forked.become_cell(order, log=log, keeper=keeper, marker=self._marker)
            self._run(Path(order["request"]), Path(order["report"]))

        keep(connection, log, run_cell)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if keeper := self._keepers.pop(pid, None):
                    self._forget(keeper)
                    if status:
                        self._end_strays()

    def _forget(self, keeper: Keeper) -> None:
        """Only then, if the keeper was killed, does the caller hear of it."""
        self._selector.unregister(keeper.ended)
        os.close(keeper.ended)
        if keeper.connection.fileno() >= 0:
            self._selector.unregister(keeper.connection)
            keeper.connection.close()

    def _end_strays(self) -> None:
        """What a keeper had that was killed is the host's own child now."""
        until = time.monotonic() + STRAYS_S
        while (strays := processes.children(apart_from=self._keepers)) and time.monotonic() < until:
            for stray in strays:
                processes.send(stray, signal.SIGKILL)
            time.sleep(processes.POLL_S)

    def _wait_for(self, source: Any, callback: Callable[[Any], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, callback)


def main() -> None:
    options = _options()
    tell_ready = _leave_the_starter() if options.shared else None
    marker = forked.marker_address()
    watched_fd = _watch(options.watched, options.watched_started)
    forked.adopt_orphans()
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


def _only_wake(_: int) -> None:
    """Ended cells are reaped after every round."""


if __name__ == "__main__":
    main()
