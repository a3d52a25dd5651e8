"""
The hosts of this node, from which probes are forked: found, or started.

A warm host is shared by all that want the same build in the same environment below the
same raylet, and goes when that does. A cold one is for one cell, and goes with it.
"""

import fcntl
import hashlib
import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from jobs import processes
from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Exit
from jobs.contract.terms import Isolation, Phase
from jobs.node import environment, host_sockets, runtime_folder
from jobs.node.errors import HostLostError, NodeError
from jobs.node.host_boot import POLL_S, Host, boot, exit_of

BOOT_S = 300.0
"""Unless the request has a deadline for imports."""

END_S = 5.0
"""For a host to end that nobody needs any more."""


@contextmanager
def connection(request: CellRequest) -> Iterator[socket.socket]:
    """To a host of the request's build, ready for one order. Raises HostBootError."""
    host = _host(request)
    if request.isolation is Isolation.WARM:
        with _shared(host) as shared:
            yield shared
    else:
        me = processes.identify(os.getpid())
        with _private(replace(host, watched=me, name=uuid.uuid4().hex[:16])) as private:
            yield private


def fork(host: socket.socket, order: Mapping[str, Any], log: int) -> processes.Tree:
    """
    Have the host fork a cell that writes its output to *log*. Raises HostLostError.

    It ends when the connection is closed.
    """
    try:
        socket.send_fds(host, [json.dumps(order).encode()], [log])
        answer = host_sockets.answer(host)
    except OSError as error:
        raise HostLostError from error
    if "error" in answer:
        raise NodeError(answer["error"])
    return processes.Tree(
        token=order["token"],
        leader=processes.Process(**answer["cell"]),
        keeper=processes.Process(**answer["keeper"]),
    )


def ended(host: socket.socket) -> Exit | None:
    """How the forked cell ended; None while it has not. Raises HostLostError."""
    try:
        return exit_of(os.waitstatus_to_exitcode(host_sockets.receive(host)["status"]))
    except BlockingIOError:
        return None
    except OSError as error:
        raise HostLostError from error


def _host(request: CellRequest) -> Host:
    env = environment.of_host(request)
    identity = [request.build.digest, request.build.python, env]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return Host(
        python=request.build.python,
        env=env,
        watched=runtime_folder.owner(),
        folder=runtime_folder.current(),
        name=digest[:16],
        boot_s=request.deadlines.phases_s.get(Phase.IMPORT, BOOT_S),
    )


def _shared(host: Host) -> socket.socket:
    if found := host_sockets.connect(host.socket):
        return found
    with _lock(host.folder / f"{host.name}.lock", host.boot_s):
        # Another caller may have started it while this one waited.
        if found := host_sockets.connect(host.socket):
            return found
        started, fresh = boot(host, "--shared")
        started.wait()
        return fresh


@contextmanager
def _private(host: Host) -> Iterator[socket.socket]:
    try:
        started, fresh = boot(host)
        try:
            with fresh:
                yield fresh
        finally:
            _await_end(started)
    finally:
        host.socket.unlink(missing_ok=True)
        host.log.unlink(missing_ok=True)


def _await_end(started: subprocess.Popen[bytes]) -> None:
    """Of a host that ends when it is hung up on."""
    try:
        with suppress(subprocess.TimeoutExpired):
            started.wait(END_S)
    finally:
        started.kill()
        started.wait()


@contextmanager
def _lock(path: Path, wait_s: float) -> Iterator[None]:
    """Whoever holds it for longer than a host needs to start was stopped: go on without it."""
    until = time.monotonic() + wait_s
    with path.open("w") as file:
        while not _is_locked(file) and time.monotonic() < until:
            time.sleep(POLL_S)
        yield


def _is_locked(file: TextIOWrapper) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
