"""Wait for the end of a cell, with an eye on its output, phase, deadlines and memory."""

import dataclasses
import math
import select
import socket
import time

from jobs.contract.asked import Deadlines
from jobs.contract.attempts import Exit
from jobs.node import hosts
from jobs.node.cell_files import CellFiles
from jobs.node.cell_log import CellLog
from jobs.node.deadlines import Watch
from jobs.node.errors import HostLostError
from jobs.node.footprint import Footprint
from jobs.node.tether import Tether

SLICE_S = 0.5
"""Of waiting: Ray cancels a task with a note to Python, which wakes no system call."""

LOOK_S = 0.05
"""Between two looks at files, however much comes through the pipe."""

LAST_WORD_S = 5.0
"""For a host to say how a cell ended that was just killed."""


def until_end(  # noqa: PLR0913 - all that can end it, or tell
    host: socket.socket,
    deadlines: Deadlines,
    files: CellFiles,
    log: CellLog,
    footprint: Footprint,
    *,
    tether: Tether,
) -> Exit:
    """
    How the cell ended; or, with `timed_out`, that it did not in time, and with `parted`, that it
    did not when another part of it had ended.
    """
    watch = Watch(deadlines, time.monotonic())
    look_at, parted_until = 0.0, math.inf
    while (ended := _ended(host)) is None:
        now = time.monotonic()
        if now >= look_at:
            look_at = now + LOOK_S
            watch.see(files.read_phase(), now)
            watch.hear(log.heard_at)
            if not footprint.due_in_s():
                footprint.look()
            if missed := watch.missed(now):
                return Exit(timed_out=missed)
            if (grace_s := tether.grace_s()) is not None:
                parted_until = min(parted_until, now + grace_s)
            if now >= parted_until:
                return Exit(parted=True)
        next_s = min(watch.left_s(now), footprint.due_in_s())
        _wait(host, log, min(SLICE_S, max(LOOK_S, next_s)), tether.sources)
        log.take()
    return ended


def last_word(host: socket.socket, log: CellLog, how: Exit) -> Exit:
    """How a cell took its end that had to be ended."""
    until = time.monotonic() + LAST_WORD_S
    while time.monotonic() < until:
        if ended := _ended(host):
            return dataclasses.replace(ended, timed_out=how.timed_out)
        _wait(host, log, SLICE_S)
        log.take()
    return dataclasses.replace(how, host_lost=True)


def _ended(host: socket.socket) -> Exit | None:
    try:
        return hosts.ended(host)
    except HostLostError:
        return Exit(host_lost=True)


def _wait(host: socket.socket, log: CellLog, seconds: float, others: tuple[int, ...] = ()) -> None:
    either = select.poll()
    for source in (host.fileno(), log.source, *others):
        either.register(source, select.POLLIN)
    either.poll(seconds * 1000)
