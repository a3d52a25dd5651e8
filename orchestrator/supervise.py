"""
A run in a process of its own, so that somebody is left to say how it ended and to clear up.

Ray ends its driver without an exception where it loses a process of its own. Whatever
the run orphans becomes a child of the supervisor. Signals reach the run through it only:
the run has a process group of its own, so that Ctrl-C does not hit Ray and its workers.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import psutil

from jobs import shared_memory
from orchestrator.errors import (
    BLOCKED,
    ONE_PRESS_S,
    SHIPS,
    ClusterError,
    RunError,
    StoppedError,
    heeded,
)
from orchestrator.running import vital

IN_ORDER_S = 45.0
"""What a run gets after the first signal. Ray waits without end for some that do not answer."""

AT_ONCE_S = 3.0
"""What a run gets after the second signal, which ends it at once if it can still listen."""

GRACE_S = 5.0
"""For hosts, which see that their raylet is gone, and clear up after their cells."""

GIVEN_UP_S = 10.0
"""Not even SIGKILL ends what is stuck in a driver."""

STDIN = 0
LOOK_S = 0.05
TICK_S = 1.0

SLOW_TO_GO = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Ray's own, which look for a killed driver's cluster for another minute."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(kw_only=True, slots=True)
class _Run:
    pid: int
    answer: int
    """A pipe, in which the exit code comes as one byte."""

    stops: list[tuple[signal.Signals, float]]
    status: int | None = None


def supervised(work: Callable[[], int]) -> int:
    """The exit code of *work*, done in another process. Raises RunError if that has none."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Where it is ignored, the kernel keeps no child's end.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    shared = shared_memory.present()
    run = _start(work)
    watch = vital.Watch(run.pid)
    try:
        while run.status is None:
            _pass_on(run, signal.sigtimedwait(_watched(), TICK_S))
            watch.look()
            _reap(run)
        return _answer(run)
    finally:
        _take_back_terminal(run)
        _end_what_is_left(run)
        shared_memory.sweep(shared)


def _watched() -> set[signal.Signals]:
    return {*heeded(), signal.SIGCHLD, signal.SIGWINCH}


def _start(work: Callable[[], int]) -> _Run:
    # Blocked, so that none is lost before it is waited for.
    signal.pthread_sigmask(signal.SIG_BLOCK, _watched())
    supervisor = os.getpid()
    answer, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(answer)
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor:
            os._exit(StoppedError.exit_code)
        # A terminal with `stty tostop` would stop what writes from another process group.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _watched())
        _work(work, tell)
    os.close(tell)
    return _Run(pid=pid, answer=answer, stops=[])


def _work(work: Callable[[], int], tell: int) -> NoReturn:
    code = RunError.exit_code
    try:
        code = work()
    except SystemExit as early:
        code = early.code if isinstance(early.code, int) else SHIPS
        raise
    finally:
        # If the supervisor is gone, nobody asks.
        with suppress(BrokenPipeError):
            os.write(tell, bytes([code]))
    sys.exit(code)


def _pass_on(run: _Run, came: signal.struct_siginfo | None) -> None:
    number = signal.Signals(came.si_signo) if came else None
    if number is signal.SIGWINCH:
        os.kill(run.pid, number)
    elif number in heeded() and not _is_one_press(run):
        run.stops.append((number, time.monotonic()))
        os.kill(run.pid, number)
        # A run that somebody stopped could not hear it.
        os.kill(run.pid, signal.SIGCONT)
    patience = zip(run.stops, (IN_ORDER_S, AT_ONCE_S), strict=False)
    if any(_past(came, limit_s) for (_, came), limit_s in patience):
        os.kill(run.pid, signal.SIGKILL)


def _is_one_press(run: _Run) -> bool:
    return bool(run.stops) and not _past(run.stops[-1][1], ONE_PRESS_S)


def _reap(run: _Run) -> None:
    """The run, and whatever it orphaned."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == run.pid:
                run.status = ended[1]


def _answer(run: _Run) -> int:
    code = os.read(run.answer, 1)
    if run.stops and code not in {
        bytes([SHIPS]),
        bytes([BLOCKED]),
        bytes([StoppedError.exit_code]),
    }:
        raise StoppedError(
            f"stopped by {run.stops[0][0].name}; what finished is kept, "
            "and the same command goes on from there"
        )
    if code:
        return code[0]
    assert run.status is not None
    ended = os.waitstatus_to_exitcode(run.status)
    how = f"was ended by {signal.Signals(-ended).name}" if ended < 0 else f"ended with {ended}"
    raise ClusterError(
        f"the process that drives Ray {how}: somebody killed it, memory ran out, or the cluster "
        "was lost. What finished is kept, and the same command goes on from there."
    )


def _take_back_terminal(run: _Run) -> None:
    """From a run that had it and was killed: its process group is its own."""
    with suppress(OSError):
        if os.tcgetpgrp(STDIN) == run.pid:
            kept = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(STDIN, os.getpgrp())
            signal.signal(signal.SIGTTOU, kept)


def _end_what_is_left(run: _Run) -> None:
    """Most of it is about to go by itself."""
    began = time.monotonic()
    while (left := psutil.Process().children(recursive=True)) and not _past(began, GIVEN_UP_S):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                if _past(began, GRACE_S) or _is_slow_to_go(process):
                    process.kill()
        time.sleep(LOOK_S)
        _reap(run)


def _is_slow_to_go(process: psutil.Process) -> bool:
    return " ".join(process.cmdline()).startswith(SLOW_TO_GO)


def _past(began: float, limit_s: float) -> bool:
    return time.monotonic() - began > limit_s


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value)
