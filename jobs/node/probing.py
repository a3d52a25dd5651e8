"""Have a probe forked, watch it to its end, and leave nothing of it behind."""

import dataclasses
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs import processes, shared_memory
from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Exit
from jobs.contract.terms import Isolation, Phase, to_json
from jobs.node import device_memory, environment, hosts, ports, runtime_folder, stacks, watching
from jobs.node.cell_files import CellFiles
from jobs.node.cell_log import CellLog
from jobs.node.errors import HostBootError, HostLostError, NodeError, PartedError
from jobs.node.footprint import Footprint
from jobs.node.kernel_log import KernelLog
from jobs.node.tether import ALONE, Tether
from jobs.secrets import Redactor

OUT_OF_TIME = (
    processes.Step(signal=signal.SIGTERM, wait_s=3.0),
    processes.Step(signal=signal.SIGKILL, wait_s=10.0),
)
"""For a cell whose stacks are in its log already."""

PARTED = (
    processes.Step(signal=signal.SIGTERM, wait_s=2.0),
    processes.Step(signal=signal.SIGKILL, wait_s=10.0),
)
"""For a part of a cell that has no more to do, since another ended."""

MEET_S = 60.0
"""For the other nodes of a cell to be ready, beside what they may take to start a host."""

BUILD_ENDED = "the build's interpreter ended before a probe could be forked from it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    exit: Exit
    seconds: float
    phase: Phase
    waiting: tuple[str, ...] = ()
    memory_mib: int | None = None
    killed: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cell:
    """One that runs, and how to look at it."""

    host: socket.socket
    request: CellRequest
    files: CellFiles
    log: CellLog
    kernel: KernelLog
    tether: Tether


def probe(
    request: CellRequest, files: CellFiles, redactor: Redactor, tether: Tether = ALONE
) -> Outcome:
    began = time.monotonic()
    try:
        tether.join()
        with hosts.connection(request) as host, CellLog(files.log, redactor) as log:
            if request.isolation is Isolation.WARM:
                # The start of a host that others use too is not this cell's time.
                began = time.monotonic()
            with KernelLog() as kernel:
                cell = _Cell(
                    host=host, request=request, files=files, log=log, kernel=kernel, tether=tether
                )
                return _cleaned_up(cell, began)
    except PartedError:
        seconds = time.monotonic() - began
        return Outcome(exit=Exit(parted=True), seconds=seconds, phase=Phase.PREPARE)
    except HostBootError as error:
        files.log.write_text(redactor.text(error.log))
        return Outcome(
            exit=error.exit,
            seconds=time.monotonic() - began,
            phase=Phase.IMPORT,
            waiting=error.waiting,
            notes=() if error.exit.timed_out else (BUILD_ENDED,),
        )


def _cleaned_up(cell: _Cell, began: float) -> Outcome:
    """Nothing of the cell is left in files, in shared memory or on a device."""
    shared_before, devices_before = shared_memory.present(), device_memory.used()
    try:
        with _temporary_folder() as temporary, ports.held() as port:
            ready = time.monotonic()
            cell = _seated(cell, port)
            # To wait for other nodes is not this cell's time.
            outcome = _forked(cell, temporary, port, began + time.monotonic() - ready)
    finally:
        shared_memory.sweep(shared_before)
    held = device_memory.still_held(devices_before)
    return dataclasses.replace(outcome, notes=(*outcome.notes, *held))


def _seated(cell: _Cell, port: int) -> _Cell:
    """Where the engine spans several nodes, once all of them are ready."""
    if (part := cell.request.part) is None:
        return cell
    patience_s = cell.request.deadlines.phases_s.get(Phase.IMPORT, hosts.BOOT_S) + MEET_S
    seat = part.seat(cell.tether.meet(port + ports.MEETING, patience_s))
    asked = dataclasses.replace(cell.request.probe, seat=seat)
    return dataclasses.replace(cell, request=dataclasses.replace(cell.request, probe=asked))


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A short path: engines put sockets there."""
    with tempfile.TemporaryDirectory(
        dir=runtime_folder.current(), ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def _forked(cell: _Cell, temporary: Path, port: int, began: float) -> Outcome:
    token = uuid.uuid4().hex
    tree = processes.Tree(token=token)
    try:
        tree = hosts.fork(cell.host, _order(cell, temporary, port, token), cell.log.sink)
        return _watched(cell, tree, began)
    except HostLostError:
        processes.end_all(tree, processes.AT_ONCE)
        seconds = time.monotonic() - began
        return Outcome(exit=Exit(host_lost=True), seconds=seconds, phase=Phase.PREPARE)
    # Whoever interrupts a node must not be left with a probe.
    except BaseException:
        processes.end_all(tree, processes.AT_ONCE)
        raise


def _order(
    cell: _Cell, temporary: Path, port: int, token: str
) -> dict[str, str | dict[str, str | None]]:
    return {
        "request": str(_whole_request(cell, temporary)),
        "report": str(cell.files.report),
        "folder": str(cell.files.folder),
        "token": token,
        "env": environment.of_cell(cell.request, temporary, port),
    }


def _whole_request(cell: _Cell, temporary: Path) -> Path:
    """Not the one in the cell's folder, which others may read and which holds no secrets."""
    file = temporary / cell.files.request.name
    try:
        file.write_text(to_json(cell.request.probe))
    except OSError as error:
        raise NodeError(f"{file} can't be written: {error.strerror}") from error
    return file


def _watched(cell: _Cell, tree: processes.Tree, began: float) -> Outcome:
    footprint = Footprint(tree)
    deadlines = cell.request.deadlines
    how = watching.until_end(
        cell.host, deadlines, cell.files, cell.log, footprint, tether=cell.tether
    )
    seconds, phase = time.monotonic() - began, cell.files.read_phase()
    # Where the keeper is gone, nothing else may lead to all of them.
    tree = dataclasses.replace(tree, known=frozenset(footprint.seen))
    waiting = stacks.dump(tree, cell.log) if how.timed_out else ()
    ended = processes.end_all(tree, _steps(how), cell.log.take_for)
    if how.timed_out and tree.keeper:
        # It may have been stopped, as the rest of the cell.
        processes.send(tree.keeper, signal.SIGCONT)
        how = watching.last_word(cell.host, cell.log, how)
    cell.log.finish()
    pids = {process.pid for process in footprint.seen}
    shortage = cell.kernel.out_of_memory(pids, was_killed=_was_killed(how))
    return Outcome(
        exit=dataclasses.replace(how, out_of_memory=shortage is not None),
        seconds=seconds,
        phase=phase,
        waiting=waiting,
        memory_mib=max(footprint.most_mib or 0, cell.files.read_memory_mib()) or None,
        killed=0 if how.parted else len(ended.signalled - {tree.leader}),
        notes=(*_left(ended), *([shortage] if shortage else [])),
    )


def _steps(how: Exit) -> Sequence[processes.Step]:
    if how.timed_out:
        return OUT_OF_TIME
    if how.parted:
        return PARTED
    return processes.AT_ONCE if how.host_lost else processes.LEFT_BEHIND


def _was_killed(how: Exit) -> bool:
    """By somebody else."""
    return how.signal == signal.SIGKILL and not how.timed_out


def _left(ended: processes.Ended) -> tuple[str, ...]:
    if not ended.left:
        return ()
    pids = ", ".join(str(process.pid) for process in sorted(ended.left, key=lambda p: p.pid))
    return (f"processes that not even SIGKILL ended: {pids}",)
