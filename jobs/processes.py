"""
Which processes belong to a cell, and how they are ended.

A process is known by its id and its start time, so that an id that the kernel gave
away again is never mistaken. It belongs to a cell if it descends from the cell's
keeper, which adopts what the cell orphans. Where the keeper is gone, there are worse
signs left: to have been seen before, to be in the session of the cell's leader, to descend
from one that is, or to carry the cell's token in the environment that the kernel shows.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARKER = "MATRIX_CELL"
"""The variable that holds a cell's token. Of names with VLLM_ vLLM warns if it knows them not."""

TOKEN_LENGTH = 32

POLL_S = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    pid: int
    started: int
    """Clock ticks after the machine's start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """Every process of one cell, wherever it went. None: not known, or there is none."""

    token: str | None = None
    leader: Process | None = None
    """The one that was forked."""

    keeper: Process | None = None
    """The parent of the leader. It does not belong to the cell."""

    known: frozenset[Process] = frozenset()
    """Seen to belong to it while the keeper was there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What to do to processes that should end, and how long they get to do so."""

    signal: signal.Signals | None
    wait_s: float


LEFT_BEHIND = (
    Step(signal=None, wait_s=1.0),
    Step(signal=signal.SIGTERM, wait_s=2.0),
    Step(signal=signal.SIGKILL, wait_s=10.0),
)
"""For what outlived a probe: it may be about to end by itself."""

AT_ONCE = (Step(signal=signal.SIGKILL, wait_s=2.0),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    signalled: frozenset[Process]
    """All that did not end by themselves."""

    left: frozenset[Process]
    """Those that not even SIGKILL ended: stuck in a driver, or another user's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stat:
    process: Process
    parent: int
    session: int
    is_running: bool
    """Not a zombie."""

    is_stopped: bool


def identify(pid: int) -> Process:
    """The process that has this id now, be it a zombie. Raises ProcessLookupError."""
    if (stat := _stat(pid)) is None:
        raise ProcessLookupError(pid)
    return stat.process


def alive(tree: Tree) -> frozenset[Process]:
    stats = {stat.process.pid: stat for stat in _running()}
    # Asked after the look: only a keeper that was there all the time has lost nobody.
    if tree.keeper is not None and runs(tree.keeper):
        members = _descendants({tree.keeper.pid}, stats)
    else:
        members = {pid for pid, stat in stats.items() if _is_member(stat, tree, stats)}
        members |= _descendants(members, stats)
    return frozenset(stats[pid].process for pid in members - {os.getpid()})


def children(*, apart_from: Collection[int]) -> frozenset[Process]:
    """Of this process, those that run."""
    return frozenset(
        stat.process
        for stat in _running()
        if stat.parent == os.getpid() and stat.process.pid not in apart_from
    )


def runs(process: Process) -> bool:
    """Whether it is there, and no zombie."""
    stat = _stat(process.pid)
    return stat is not None and stat.process == process and stat.is_running


def is_running(pid: int) -> bool:
    """Whether any process has this id, other than a zombie."""
    stat = _stat(pid)
    return stat is not None and stat.is_running


def is_stopped(pid: int) -> bool:
    """Whether it got SIGSTOP, or the like, and can't answer until it is continued."""
    stat = _stat(pid)
    return stat is not None and stat.is_stopped


def end_all(
    tree: Tree, steps: Sequence[Step], pause: Callable[[float], object] = time.sleep
) -> Ended:
    """
    Take the cell's processes through *steps* until none is left.

    *pause* is called between two looks, with the seconds until the next one.
    """
    here = alive(tree)
    signalled: set[Process] = set()
    for step in steps:
        until = time.monotonic() + step.wait_s
        reached: set[Process] = set()
        while here and time.monotonic() < until:
            # Also those that were forked since the last look.
            for process in here - reached:
                if step.signal is not None and send(process, step.signal):
                    signalled.add(process)
            reached |= here
            pause(POLL_S)
            here = alive(tree)
    return Ended(signalled=frozenset(signalled), left=here)


def title(pid: int) -> str:
    """What it calls itself; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def send(process: Process, signum: signal.Signals) -> bool:
    """Whether the signal went out, and to the very process that was meant."""
    if signum == signal.SIGUSR1 and not _catches(process.pid, signum):
        return False
    with suppress(ProcessLookupError, PermissionError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # Once the descriptor is open, the id can't change hands unnoticed.
            if identify(process.pid) == process:
                # One that is stopped would not heed it.
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                signal.pidfd_send_signal(descriptor, signum)
                return True
        finally:
            os.close(descriptor)
    return False


def _is_member(stat: _Stat, tree: Tree, stats: dict[int, _Stat]) -> bool:
    return (
        stat.process in tree.known
        or _is_in_session(stat, tree.leader, stats)
        or _carries(stat.process.pid, tree.token)
    )


def _is_in_session(stat: _Stat, leader: Process | None, stats: dict[int, _Stat]) -> bool:
    if leader is None or stat.session != leader.pid:
        return False
    # The kernel keeps the id of a session that has members; an empty one's may be another's now.
    holder = stats.get(leader.pid)
    return holder is None or holder.process == leader


def _descendants(ancestors: set[int], stats: dict[int, _Stat]) -> set[int]:
    found: set[int] = set()
    generation = ancestors
    while generation:
        generation = {pid for pid, stat in stats.items() if stat.parent in generation} - found
        found |= generation
    return found


def _carries(pid: int, token: str | None) -> bool:
    if token is None:
        return False
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or another user's
        return False
    return f"{MARKER}={token}".encode() in environ.split(b"\0")


def _catches(pid: int, signum: signal.Signals) -> bool:
    """SIGUSR1 ends a process that does not wait for it, and with it the cause of a hang."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False
    caught = int(status.partition(b"\nSigCgt:")[2].split()[0], 16)
    return bool(caught >> (signum - 1) & 1)


def _running() -> Iterator[_Stat]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) and stat.is_running:
            yield stat


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may hold anything.
    fields = text.rpartition(b")")[2].split()
    return _Stat(
        process=Process(pid=pid, started=int(fields[19])),
        parent=int(fields[1]),
        session=int(fields[3]),
        is_running=fields[0] not in (b"Z", b"X"),
        is_stopped=fields[0] in (b"T", b"t"),
    )
