"""Have a probe forked, wait for it until its deadline, and leave no process of it behind."""

import dataclasses
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs import processes
from jobs.contract import CellRequest, Exit, Isolation, Phase, Timeout
from jobs.node import environment, hosts, runtime_folder
from jobs.node.cell_files import CellFiles

LAST_WORD_S = 5.0
"""For a host to say how a cell ended that was just killed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    exit: Exit
    seconds: float
    phase: Phase
    killed: int = 0
    notes: tuple[str, ...] = ()


def probe(request: CellRequest, files: CellFiles) -> Outcome:
    began = time.monotonic()
    try:
        with hosts.connection(request) as host, _temporary_folder() as temporary:
            if request.isolation is Isolation.WARM:
                # The start of a host that others use too is not this cell's time.
                began = time.monotonic()
            return _forked(host, request, files, temporary, began=began)
    except hosts.HostBootError as error:
        files.log.write_text(error.log)
        return Outcome(
            exit=error.exit,
            seconds=time.monotonic() - began,
            phase=Phase.IMPORT,
            notes=("the build's interpreter ended before a probe could be forked from it",),
        )


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A short path: engines put sockets there."""
    with tempfile.TemporaryDirectory(
        dir=runtime_folder.current(), ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def _forked(
    host: socket.socket, request: CellRequest, files: CellFiles, temporary: Path, *, began: float
) -> Outcome:
    token = uuid.uuid4().hex
    tree = processes.Tree(token=token)
    try:
        with files.log.open("ab") as log:
            tree = hosts.fork(host, _order(request, files, temporary, token), log.fileno())
        how, steps = _wait(host, request.deadlines.attempt_s)
        seconds = time.monotonic() - began
        ended = processes.end_all(tree, steps)
    # Whoever interrupts a node must not be left with a probe.
    except BaseException:
        processes.end_all(tree, processes.AT_ONCE)
        raise
    return Outcome(
        exit=_last_word(host, how) if how.timed_out else how,
        seconds=seconds,
        phase=files.read_phase(),
        killed=len(ended.signalled - {tree.leader}),
        notes=_notes(ended),
    )


def _order(
    request: CellRequest, files: CellFiles, temporary: Path, token: str
) -> dict[str, str | dict[str, str | None]]:
    return {
        "request": str(files.request),
        "report": str(files.report),
        "folder": str(files.folder),
        "token": token,
        "env": environment.of_cell(request, temporary),
    }


def _wait(host: socket.socket, deadline_s: float) -> tuple[Exit, Sequence[processes.Step]]:
    """How the probe ended, if it did, and what then is to be done to its processes."""
    try:
        return hosts.wait(host, deadline_s), processes.LEFT_BEHIND
    except TimeoutError:
        return Exit(timed_out=Timeout.ATTEMPT), processes.HUNG
    except hosts.HostLostError:
        return Exit(host_lost=True), processes.AT_ONCE


def _last_word(host: socket.socket, how: Exit) -> Exit:
    """How a probe took its end."""
    try:
        return dataclasses.replace(hosts.wait(host, LAST_WORD_S), timed_out=how.timed_out)
    except (TimeoutError, hosts.HostLostError):
        return dataclasses.replace(how, host_lost=True)


def _notes(ended: processes.Ended) -> tuple[str, ...]:
    if not ended.left:
        return ()
    pids = ", ".join(str(process.pid) for process in sorted(ended.left, key=lambda p: p.pid))
    return (f"processes that not even SIGKILL ended: {pids}",)
