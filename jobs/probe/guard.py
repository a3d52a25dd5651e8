"""
A small process that ends a host which can't do it itself.

A host goes with the process that it serves. One that is stopped does not notice, nor
does one that hangs in native code while it imports.
"""

import os
import select
import signal

from jobs import processes
from jobs.probe import forked

GRACE_S = 2.0


def post(watched: int) -> processes.Process:
    """Have this process ended soon after the one that *watched* describes."""
    host = os.pidfd_open(os.getpid())
    try:
        return processes.identify(forked.fork(lambda: _watch(host, watched)))
    finally:
        os.close(host)


def dismiss(guard: processes.Process) -> None:
    """Have it gone before this process is, whose end it would see a little later."""
    if processes.send(guard, signal.SIGKILL):
        os.waitpid(guard.pid, 0)


def _watch(host: int, watched: int) -> None:
    ready, _, _ = select.select([host, watched], [], [])
    if host not in ready and not select.select([host], [], [], GRACE_S)[0]:
        signal.pidfd_send_signal(host, signal.SIGKILL)
