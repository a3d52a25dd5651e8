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

The host ends when the process that it watches does, when nobody needed it for a while, or
when it is worn. SIGUSR1 has it write its stacks.
"""

import argparse
import faulthandler
import gc
import os
import signal
from pathlib import Path
from typing import NoReturn

from jobs import processes
from jobs.probe import fitness, forked, guard
from jobs.probe.serving import Host, Listener, Terms


def main() -> None:
    options = _options()
    tell_ready = _leave_the_starter() if options.shared else None
    marker = forked.marker_address()
    watched = _watch(options.watched, options.watched_started)
    terms = Terms(
        watched=watched,
        guard=guard.post(watched),
        idle_s=options.idle_s,
        is_shared=options.shared,
    )
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    forked.adopt_orphans()
    from jobs.probe import cell

    cell.preload()
    if obstacles := fitness.obstacles():
        _refuse(obstacles)
    gc.collect()
    # What the collector never looks at is never written to, and stays shared with the cells.
    gc.freeze()
    listener = Listener(options.socket)
    if tell_ready is not None:
        os.write(tell_ready, b"1")
        os.close(tell_ready)
    Host(cell.run, listener=listener, terms=terms, marker=marker).serve()
    guard.dismiss(terms.guard)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("socket", type=Path)
    parser.add_argument("--watched", type=int, required=True)
    parser.add_argument("--watched-started", type=int, required=True)
    parser.add_argument("--idle-s", type=float, required=True)
    parser.add_argument("--shared", action="store_true", help="outlive the starter, serve many")
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
    if code == 0:
        print("the interpreter was ended, with exit code 0, while it imported", flush=True)  # noqa: T201 - into its log
        os._exit(1)
    os._exit(code if code > 0 else 128 - code)


def _refuse(obstacles: tuple[str, ...]) -> NoReturn:
    """At once: a thread that nobody ends would keep an interpreter from its end."""
    reasons = "; ".join(obstacles)
    print(f"no cell can be forked from this process: {reasons}", flush=True)  # noqa: T201 - into its log
    os._exit(1)


def _watch(pid: int, started: int) -> int:
    descriptor = os.pidfd_open(pid)
    if processes.identify(pid) != processes.Process(pid=pid, started=started):
        raise ProcessLookupError(f"process {pid}, which the host serves, is gone")
    return descriptor


if __name__ == "__main__":
    main()
