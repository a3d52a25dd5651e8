"""Where a cell's processes are that did not end in time: into its log, and as frames."""

import re
import signal
import time
from pathlib import Path

from jobs import processes
from jobs.node.cell_log import CellLog

MOST_FRAMES = 20
LONGEST_COMMAND = 200

ANSWER_S = 1.0
PAUSE_S = 0.1
"""Without output, after which a process has written all its stacks."""

ALL_S = 6.0
"""For the stacks of all processes; more than a few all tell the same."""

_MAIN_THREAD = re.compile(r"Current thread 0x[^\n]*:\n((?:  File [^\n]*\n)+)")
_FRAME = re.compile(r'  File "(?P<file>[^"\n]*)", line (?P<line>\d+) in (?P<function>.*)')


def dump(tree: processes.Tree, log: CellLog) -> tuple[str, ...]:
    """
    Describe all processes and have those in Python write their stacks, one after the
    other: stacks that are written at once are mixed. Returns where the leader's main
    thread is, the innermost frame first.
    """
    until = time.monotonic() + ALL_S
    frames: tuple[str, ...] = ()
    for process in sorted(processes.alive(tree), key=lambda one: (one != tree.leader, one.pid)):
        log.say(_description(process.pid))
        stacks = _written(process, log, until)
        if process == tree.leader:
            frames = of_main_thread(stacks.decode(errors="replace"))
    return frames


def of_main_thread(stacks: str) -> tuple[str, ...]:
    """Of what `faulthandler` writes. A signal is handled in the main thread: the current one."""
    dumps = _MAIN_THREAD.findall(stacks)
    if not dumps:
        return ()
    frames = _FRAME.finditer(dumps[-1])
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
    shown = command.replace("\0", " ").strip()[:LONGEST_COMMAND]
    state = f"{fields['State'].strip()}{_place_in_the_kernel(pid)}"
    return f"process {pid} ({fields['Name'].strip()}) is {state}: {shown}"


def _place_in_the_kernel(pid: int) -> str:
    try:
        place = Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return ""
    return f" in {place}" if place.strip("0") else ""
