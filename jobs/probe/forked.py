"""What makes a cell's own process of a fork of the host, before anything of the cell runs."""

import ctypes
import faulthandler
import os
import resource
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs import processes

_PR_SET_PDEATHSIG = 1


def marker_address() -> int:
    """Where the host's first environment keeps a place for a cell's token."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    address: int = getenv(processes.MARKER.encode())
    return address


def become_cell(order: Mapping[str, Any], *, host: int, marker: int) -> None:
    os.setsid()
    _die_with(host)
    _redirect(Path(order["log"]))
    _reset_signals()
    _leave_no_core()
    os.chdir(order["folder"])
    _mark(order["token"], marker)
    _set_environment(order["env"])


def _die_with(host: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != host:  # it died before it could be said
        os.kill(os.getpid(), signal.SIGKILL)


def _redirect(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)


def _reset_signals() -> None:
    """As a shell starts a program, whatever a Ray worker left; and stacks on SIGUSR1."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signum in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
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
