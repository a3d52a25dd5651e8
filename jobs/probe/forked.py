"""What is done in a fork of the host, before anything of a cell runs in it."""

import ctypes
import faulthandler
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from jobs import processes

BROKEN = 70
"""Exit code of a host, or of a fork of one, that raised."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def fork(run: Callable[[], None]) -> int:
    """The id of a child that does nothing else than to *run*."""
    pid = os.fork()
    if pid:
        return pid
    code = BROKEN
    try:
        run()
        code = 0
    # Whatever it is, the fork must not go on as what it was forked from.
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def adopt_orphans() -> None:
    """Be the one whose children all become that descend from this process and lose their parent."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def heed_the_end_of(parent: int, signum: signal.Signals) -> None:
    """Have the kernel send *signum* to this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:  # it ended before that could be said
        os.kill(os.getpid(), signum)


def marker_address() -> int:
    """Where the host's first environment keeps a place for a cell's token."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    address: int = getenv(processes.MARKER.encode())
    return address


def become_cell(order: Mapping[str, Any], *, log: int, keeper: int, marker: int) -> None:
    os.setsid()
    heed_the_end_of(keeper, signal.SIGKILL)
    _redirect(log)
    _reset_signals()
    _leave_no_core()
    os.chdir(order["folder"])
    _mark(order["token"], marker)
    _set_environment(order["env"])


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)


def _reset_signals() -> None:
    """As a shell starts a program, whatever a Ray worker left; and stacks on SIGUSR1."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signum in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGTTOU):
        signal.signal(signum, signal.SIG_DFL)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def _leave_no_core() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _mark(token: str, address: int) -> None:
    """
    Write the token over the place that was kept for it. What the kernel shows as a
    process's environment is what it was started with, and a fork was never started.
    """
    ctypes.memmove(address, token.encode(), len(token))
    os.environ[processes.MARKER] = token


def _set_environment(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None  # asked anew, now that TMPDIR is the cell's own
