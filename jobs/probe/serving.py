"""What a host does once it has imported everything: it has a keeper forked for each order."""

import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import processes, shared_memory
from jobs.probe import fitness, forked
from jobs.probe.keeper import keep, tell

PACKET = 65536
TICK_S = 0.5
STRAYS_S = 5.0
"""For what was killed to be gone, while everybody else waits."""

Run = Callable[[Path, Path], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """For how long a host is there, and for whom."""

    watched: int
    """A descriptor of the process with which the host ends."""

    guard: processes.Process
    """What sees to that."""

    idle_s: float
    is_shared: bool
    """By more than the one who comes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Keeper:
    connection: socket.socket
    ended: int
    """A descriptor that becomes readable when it has."""


class Listener:
    """A socket under a name, which may be a successor's by now."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._path = path
        # Under another name first: who sees the socket can connect to it.
        unfinished = path.with_suffix(f".{os.getpid()}")
        self.socket.bind(str(unfinished))
        self.socket.listen(socket.SOMAXCONN)
        self._inode = unfinished.stat().st_ino
        unfinished.rename(path)

    def close(self) -> None:
        """The inode can't be given away as long as the socket is open."""
        with suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self.socket.close()


class Host:
    """Has one thread, so that a fork copies the whole of it."""

    def __init__(self, run: Run, *, listener: Listener, terms: Terms, marker: int) -> None:
        self._run = run
        self._listener = listener
        self._terms = terms
        self._marker = marker
        self._is_watched_here = True
        self._is_open = True
        self._needed_at = time.monotonic()
        self._served = 0
        self._callers: set[socket.socket] = set()
        self._keepers: dict[int, _Keeper] = {}
        self._memory_before = shared_memory.present()
        # Not epoll, whose state a fork would share with the host.
        self._selector = selectors.PollSelector()
        self._wait_for(listener.socket, self._accept)
        self._wait_for(terms.watched, self._watched_ended)
        self._began = fitness.state()

    def serve(self) -> None:
        """Keepers end what they have when the host does."""
        while self._is_watched_here and (self._is_open or self._callers or self._keepers):
            for key, _ in self._selector.select(TICK_S):
                key.data(key.fileobj)
            self._reap()
            self._retire_if_idle()

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self._callers.add(connection)
        self._wait_for(connection, self._receive)
        tell(connection, {"host": os.getpid()})
        if not self._terms.is_shared:
            self._retire("it is for one cell")

    def _watched_ended(self, _: int) -> None:
        self._is_watched_here = False

    def _receive(self, connection: socket.socket) -> None:
        try:
            packet, logs, _, _ = socket.recv_fds(connection, PACKET, 1)
        except ConnectionError:
            packet, logs = b"", []
        if packet:
            self._fork_keeper(json.loads(packet), logs[0], connection)
        else:
            self._hang_up(connection)
        for log in logs:
            os.close(log)

    def _hang_up(self, connection: socket.socket) -> None:
        """Its keeper heard it as well, unless somebody stopped it."""
        for pid, keeper in self._keepers.items():
            if keeper.connection is connection:
                os.kill(pid, signal.SIGCONT)
        self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        if connection in self._callers:
            self._callers.remove(connection)
            self._selector.unregister(connection)
            connection.close()

    def _fork_keeper(self, order: dict[str, Any], log: int, connection: socket.socket) -> None:
        try:
            pid = forked.fork(lambda: self._become_keeper(order, log, connection))
        except OSError as error:
            tell(connection, {"error": f"no new process: {error}"})
            return
        self._keepers[pid] = _Keeper(connection=connection, ended=os.pidfd_open(pid))
        self._wait_for(self._keepers[pid].ended, _only_wake)

    def _become_keeper(self, order: dict[str, Any], log: int, connection: socket.socket) -> None:
        for key in self._selector.get_map().values():
            if key.fileobj is not connection:
                os.close(key.fd)
        keeper = os.getpid()

        def run_cell() -> None:
            forked.become_cell(order, log=log, keeper=keeper, marker=self._marker)
            self._run(Path(order["request"]), Path(order["report"]))

        keep(connection, log, run_cell)
        shared_memory.sweep(self._memory_before)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if keeper := self._keepers.pop(pid, None):
                    self._served += 1
                    self._selector.unregister(keeper.ended)
                    os.close(keeper.ended)
                    if status:
                        self._end_strays()
                    # Only now does the caller hear of a keeper that was killed.
                    self._close(keeper.connection)
                    self._look_at_itself(status)

    def _end_strays(self) -> None:
        """What a keeper had that was killed is the host's own child now."""
        spared = {*self._keepers, self._terms.guard.pid}
        until = time.monotonic() + STRAYS_S
        while (strays := processes.children(apart_from=spared)) and time.monotonic() < until:
            for stray in strays:
                processes.send(stray, signal.SIGKILL)
            time.sleep(processes.POLL_S)
        shared_memory.sweep(self._memory_before)

    def _look_at_itself(self, status: int) -> None:
        """Whether one more cell may come of this process, now that one has gone."""
        expected = [key.fd for key in self._selector.get_map().values()]
        if status:
            self._retire(f"a keeper ended with status {status}")
        elif sign := fitness.wear(self._began, cells=self._served, expected_files=expected):
            self._retire(sign)

    def _retire_if_idle(self) -> None:
        if self._callers or self._keepers:
            self._needed_at = time.monotonic()
        elif time.monotonic() - self._needed_at > self._terms.idle_s:
            self._retire("nobody needs it")

    def _retire(self, reason: str) -> None:
        """Serve who is here; whoever comes from now on starts a successor."""
        if self._is_open:
            self._is_open = False
            print(f"the host takes no more cells: {reason}", flush=True)  # noqa: T201 - into its log
            self._selector.unregister(self._listener.socket)
            self._listener.close()

    def _wait_for(self, source: Any, callback: Callable[[Any], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, callback)


def _only_wake(_: int) -> None:
    """Ended keepers are reaped after every round."""
