"""The start of a host, until it answers or its time is up."""

import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from jobs import processes
from jobs.contract.attempts import Exit, Timeout
from jobs.node import host_sockets, stacks
from jobs.node.cell_files import tail
from jobs.node.errors import HostBootError, NodeError

IDLE_S = 20.0
POLL_S = 0.02
LOG_CHARS = 100_000
"""Of the end of a host's log: an import has many frames."""

HUNG = (
    processes.Step(signal=signal.SIGUSR1, wait_s=1.0),
    processes.Step(signal=signal.SIGTERM, wait_s=3.0),
    processes.Step(signal=signal.SIGKILL, wait_s=10.0),
)
"""For a host that is not there in time: its stacks go to its log first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """One that may be there already."""

    python: str
    env: dict[str, str]
    watched: processes.Process
    folder: Path
    name: str
    boot_s: float

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


def boot(host: Host, *options: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Raises HostBootError, and leaves nothing then."""
    started = _start(host, options)
    session = processes.Tree(leader=processes.identify(started.pid))
    try:
        return started, _await(started, host, is_shared=bool(options))
    except TimeoutError:
        processes.end_all(session, HUNG)
        started.wait()
        log = tail(host.log, LOG_CHARS)
        how = Exit(timed_out=Timeout.PHASE)
        raise HostBootError(how, log, stacks.of_main_thread(log)) from None
    except BaseException:
        processes.end_all(session, processes.AT_ONCE)
        started.wait()
        raise


def _start(host: Host, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    with host.log.open("wb") as log:
        try:
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


def _await(started: subprocess.Popen[bytes], host: Host, *, is_shared: bool) -> socket.socket:
    until = time.monotonic() + host.boot_s
    while time.monotonic() < until:
        code = started.poll()
        if fresh := host_sockets.connect(host.socket):
            return fresh
        if code is not None:
            # The starter of a shared one ends in peace only if that was ready.
            how = Exit(host_lost=True) if is_shared and code == 0 else exit_of(code)
            raise HostBootError(how, tail(host.log, LOG_CHARS))
        time.sleep(POLL_S)
    raise TimeoutError


def exit_of(code: int) -> Exit:
    """Of a code as subprocess has it, or as a shell has it of a process that a signal ended."""
    if code < 0:
        return Exit(signal=-code)
    return Exit(signal=code - 128) if code > 128 else Exit(code=code)
