"""
What stands between a host and one cell, so that nothing of the cell is ever lost.

A keeper is the parent of the cell, and whatever the cell orphans becomes the keeper's
child as well, with whatever environment, in whatever session: its descendants are the
cell. It tells whoever ordered the cell how that ended, and stays until that one hangs
up or the host ends. Then it ends what is left.
"""

import dataclasses
import json
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from jobs import processes
from jobs.probe import forked

TICK_MS = 500
"""Between looks for orphans that ended, of which nothing tells."""


def keep(connection: socket.socket, log: int, run: Callable[[], None]) -> None:
    """In a fork of the host: have *run* run in a fork of this process, which logs to *log*."""
    host = os.getppid()
    host_ended = os.pidfd_open(host)
    forked.adopt_orphans()
    # A keeper that was stopped is woken, and sees then that the host has ended.
    forked.heed_the_end_of(host, signal.SIGCONT)

    def run_alone() -> None:
        connection.close()
        os.close(host_ended)
        run()

    try:
        cell = forked.fork(run_alone)
    except OSError as error:
        tell(connection, {"error": f"no new process: {error}"})
        return
    finally:
        os.close(log)
    me, leader = processes.identify(os.getpid()), processes.identify(cell)
    tell(connection, {"keeper": dataclasses.asdict(me), "cell": dataclasses.asdict(leader)})
    _watch(connection, host_ended, cell)
    processes.end_all(processes.Tree(keeper=me), processes.AT_ONCE)


def tell(connection: socket.socket, message: Mapping[str, Any]) -> None:
    with suppress(OSError):  # it hung up, which is noticed elsewhere
        connection.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)


def _watch(connection: socket.socket, host_ended: int, cell: int) -> None:
    """Until nobody wants this cell any more."""
    cell_ended = os.pidfd_open(cell)
    sources = select.poll()
    for source in (connection.fileno(), host_ended, cell_ended):
        sources.register(source, select.POLLIN)
    while True:
        ready = {source for source, _ in sources.poll(TICK_MS)}
        for pid, status in _reaped():
            if pid == cell:
                sources.unregister(cell_ended)
                tell(connection, {"status": status})
        if ready & {connection.fileno(), host_ended}:
            return


def _reaped() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended
