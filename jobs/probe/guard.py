"""
A small process that ends a host which can't do it itself.

A host goes with the process that it serves. One that is stopped does not notice, nor
does one that hangs in native code while it imports.
"""

import os
import select
import signal

from jobs.probe import forked

GRACE_S = 2.0


def post(watched: int) -> int:
    """Have this process ended soon after the one that *watched* describes. Returns an id."""
    host = os.pidfd_open(os.getpid())
    try:
        return forked.fork(lambda: _watch(host, watched))
    finally:
        os.close(host)


def _watch(host: int, watched: int) -> None:
    ready, _, _ = select.select([host, watched], [], [])
    if host not in ready and not select.select([host], [], [], GRACE_S)[0]:
        signal.pidfd_send_signal(host, signal.SIGKILL)
