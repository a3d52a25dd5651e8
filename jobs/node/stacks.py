"""Where a cell's processes are that did not end in time: into its log, and as frames."""

import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from jobs import processes
from jobs.node.cell_log import CellLog

MOST_FRAMES = 20

ANSWER_S = 1.0
PAUSE_S = 0.1
"""Without output, after which a process has written all its stacks."""

ALL_S = 6.0
"""For the stacks of all processes; more than a few all tell the same."""

_THREAD = re.compile(r"(?:Current t|T)hread 0x[^\n]*:\n((?:  File [^\n]*\n)+)")
_FRAME = re.compile(r'  File "(?P<file>[^"\n]*)", line (?P<line>\d+) in (?P<function>.*)')
_WAITS_FOR_ANOTHER = re.compile(
    r"(multiprocessing/\w+|selectors|subprocess|threading|concurrent/futures/\w+|zmq/[\w/]+"
    r"|[\w/]+/(shm_broadcast|distributed_c10d))\.py:"
)
"""Where a process, or its main thread, is that needs another to go on."""


def dump(tree: processes.Tree, log: CellLog) -> tuple[str, ...]:
    """
    Describe all processes and have those in Python write their stacks, one after the
    other: stacks that are written at once are mixed. Returns where the main thread is of
    the process that the others wait for, the innermost frame first.
    """
    until = time.monotonic() + ALL_S
    seen: list[tuple[str, ...]] = []
    for process in sorted(processes.alive(tree), key=lambda one: (one != tree.leader, one.pid)):
        log.say(_description(process.pid))
        stacks = _written(process, log, until)
        seen.append(of_main_thread(stacks.decode(errors="replace")))
    return of_the_cause(seen)


def of_the_cause(seen: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """*seen* are the frames of the leader and those that it started, in their order."""
    python = [frames for frames in seen if frames]
    busy = (frames for frames in python if not _WAITS_FOR_ANOTHER.match(frames[0]))
    # Whoever was started last may wait for a process without Python.
    return next(busy, python[-1] if python else ())


def of_main_thread(stacks: str) -> tuple[str, ...]:
    """Of what `faulthandler` writes: the main thread is the oldest, and the last one."""
    threads = _THREAD.findall(stacks)
    if not threads:
        return ()
    frames = _FRAME.finditer(threads[-1])
    return tuple(
        f"{_in_its_package(frame['file'])}:{frame['line']} {frame['function']}" for frame in frames
    )[:MOST_FRAMES]


def _written(process: processes.Process, log: CellLog, until: float) -> bytes:
    if not processes.send(process, signal.SIGUSR1):
        return b""
    asked_at = time.monotonic()
    stacks = log.take()
    while (now := time.monotonic()) < until:
        is_answered = log.heard_at > asked_at
        if now > (log.heard_at + PAUSE_S if is_answered else asked_at + ANSWER_S):
            break
        log.wait(PAUSE_S)
        stacks += log.take()
    return stacks


def _in_its_package(file: str) -> str:
    """`vllm/engine.py`: the same wherever the package lies."""
    path = root = Path(file)
    while (root.parent / "__init__.py").exists():
        root = root.parent
    return str(path.relative_to(root.parent))


def _description(pid: int) -> str:
    """Also of what is no Python, or stopped, or stuck in a driver."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return f"process {pid} has just ended"
    fields = dict(line.split(":", 1) for line in status.splitlines())
    shown = command.replace("\0", " ").strip()
    state = f"{fields['State'].strip()}{_place_in_the_kernel(pid)}"
    return f"process {pid} ({fields['Name'].strip()}) is {state}: {shown}"


def _place_in_the_kernel(pid: int) -> str:
    try:
        place = Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return ""
    return f" in {place}" if place.strip("0") else ""
