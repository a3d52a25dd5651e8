"""
The hosts of this node, from which probes are forked: found, or started.

A warm host is shared by all that want the same build in the same environment below the
same raylet, and goes when that does. A cold one is for one cell, and goes with it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs import processes
from jobs.contract import CellRequest, Exit, Isolation, Timeout
from jobs.node import environment, runtime_folder
from jobs.node.cell_files import tail
from jobs.node.errors import NodeError

BOOT_S = 300.0
ANSWER_S = 60.0
"""A host answers at once; one that takes this long hangs, and is replaced."""

IDLE_S = 20.0
SLICE_S = 0.5
POLL_S = 0.02
PACKET = 65536


class HostBootError(Exception):
    """The build's Python did not get as far as to be a host: a finding about the build."""

    def __init__(self, how: Exit, log: str) -> None:
        self.exit = how
        self.log = log
        super().__init__(f"the host did not start: {how}\n{log}")


class HostLostError(Exception):
    """The host went away while it was needed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Host:
    python: str
    env: dict[str, str]
    watched: processes.Process
    folder: Path
    name: str

    @property
    def socket(self) -> Path:
        return self.folder / f"{self.name}.sock"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def command(self) -> list[str]:
        return [
            self.python,
            "-m",
            "jobs.probe.host",
            str(self.socket),
            f"--watched={self.watched.pid}",
            f"--watched-started={self.watched.started}",
            f"--idle-s={IDLE_S}",
        ]


@contextmanager
def connection(request: CellRequest) -> Iterator[socket.socket]:
    """To a host of the request's build, ready for one order."""
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
    Have the host fork a cell that writes its output to *log*.

    It ends when the connection is closed.
    """
    host.settimeout(ANSWER_S)
    try:
        socket.send_fds(host, [json.dumps(order).encode()], [log])
        answer = _receive(host)
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
    host.setblocking(False)
    try:
        return _exit(os.waitstatus_to_exitcode(_receive(host)["status"]))
    except BlockingIOError:
        return None
    except OSError as error:
        raise HostLostError from error


def wait(host: socket.socket, timeout_s: float) -> Exit:
    """How the forked cell ended. Raises TimeoutError when it did not."""
    until = time.monotonic() + timeout_s
    while (left_s := until - time.monotonic()) > 0:
        # In slices: Ray cancels a task with a note to Python, which wakes no system call.
        select.select([host], [], [], min(left_s, SLICE_S))
        if how := ended(host):
            return how
    raise TimeoutError


def _host(request: CellRequest) -> _Host:
    env = environment.of_host(request)
    identity = [request.build.digest, request.build.python, env]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return _Host(
        python=request.build.python,
        env=env,
        watched=runtime_folder.owner(),
        folder=runtime_folder.current(),
        name=digest[:16],
    )


def _shared(host: _Host) -> socket.socket:
    if found := _connect(host.socket):
        return found
    with _lock(host.folder / f"{host.name}.lock"):
        # Another caller may have started it while this one waited.
        if found := _connect(host.socket):
            return found
        started, fresh = _boot(host, "--shared")
        started.wait()
        return fresh


@contextmanager
def _private(host: _Host) -> Iterator[socket.socket]:
    try:
        started, fresh = _boot(host)
        try:
            with fresh:
                yield fresh
        finally:
            started.kill()
            started.wait()
    finally:
        host.socket.unlink(missing_ok=True)
        host.log.unlink(missing_ok=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _boot(host: _Host, *options: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    started = _start(host, options)
    try:
        return started, _await_boot(started, host)
    except BaseException:
        if started.poll() is None:  # until it is, nobody else can have its id
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        raise


def _start(host: _Host, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    try:
        with host.log.open("wb") as log:
            return subprocess.Popen(
                [*host.command(), *options],
                env=host.env,
                cwd=host.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise NodeError(f"{host.python} can't be started: {error}") from error


def _await_boot(started: subprocess.Popen[bytes], host: _Host) -> socket.socket:
    until = time.monotonic() + BOOT_S
    while time.monotonic() < until:
        code = started.poll()
        if fresh := _connect(host.socket):
            return fresh
        if code is not None:
            raise HostBootError(_exit(code) if code else Exit(host_lost=True), tail(host.log))
        time.sleep(POLL_S)
    raise HostBootError(Exit(signal=signal.SIGKILL, timed_out=Timeout.PHASE), tail(host.log))


def _connect(path: Path) -> socket.socket | None:
    """A connection on which the host has said that it is there."""
    with contextlib.ExitStack() as undo:
        host = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        host.settimeout(ANSWER_S)
        try:
            host.connect(str(path))
            _receive(host)
        except TimeoutError:
            _kill_peer(host)
            return None
        except OSError:
            return None
        undo.pop_all()
        return host


def _kill_peer(host: socket.socket) -> None:
    size = struct.calcsize("3i")
    pid, _, _ = struct.unpack("3i", host.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if pid > 0:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _receive(host: socket.socket) -> dict[str, Any]:
    packet = host.recv(PACKET)
    if not packet:
        raise ConnectionResetError("the host closed the connection")
    answer: dict[str, Any] = json.loads(packet)
    return answer


def _exit(code: int) -> Exit:
    """Of a code as subprocess has it, or as a shell has it of a process that a signal ended."""
    if code < 0:
        return Exit(signal=-code)
    return Exit(signal=code - 128) if code > 128 else Exit(code=code)
