"""What an attempt failed of, for people: in one line, and by the few lines that show it. Pure."""

from collections.abc import Iterator

from jobs.contract.asked import Deadlines
from jobs.contract.attempts import Attempt, Timeout
from jobs.contract.seen import ExceptionSeen
from jobs.contract.terms import Phase
from orchestrator.asked.cells import Cell
from orchestrator.concluded.classify import decisive, signal_name
from orchestrator.concluded.suspects import patches_about

LINE_CHARS = 200
EXCERPT_LINES = 8
FATAL = "Fatal Python error"

_OF_BUILD = ("build_broken", "patch_raised")


def one_line(cell: Cell, attempt: Attempt, category: str) -> str:
    """From the exception that decided on the category, or from how the probe ended."""
    line = _line(cell, attempt, category)
    return f"on {attempt.exit.node}: {line}" if attempt.exit.node else line


def _line(cell: Cell, attempt: Attempt, category: str) -> str:
    if attempt.exit.timed_out:
        return _out_of_time(attempt, attempt.exit.timed_out, cell.deadlines)
    line = " ".join(_cause(attempt).split())[:LINE_CHARS]
    patches = patches_about(attempt, cell.build.patches) if category in _OF_BUILD else ()
    return f"{line} (in a file that {' and '.join(patches)} changed)" if patches else line


def excerpt(attempt: Attempt) -> tuple[str, ...]:
    """Where it waited, where it was raised, or the lines of the log that say most."""
    if attempt.waiting:
        lines = iter(attempt.waiting)
    elif (seen := decisive(attempt)) and seen.where is not None:
        lines = _raised(seen)
    else:
        lines = iter(_of_log(attempt.log_tail))
    return tuple(line[:LINE_CHARS] for line, _ in zip(lines, range(EXCERPT_LINES), strict=False))


def _out_of_time(attempt: Attempt, missed: Timeout, deadlines: Deadlines) -> str:
    phase = attempt.phase
    what = {
        Timeout.QUIET: f"no sign of life for {deadlines.quiet_s:g} s in phase {phase}",
        Timeout.ATTEMPT: f"timed out in phase {phase} ({deadlines.attempt_s:g} s for all phases)",
        Timeout.PHASE: f"timed out in phase {phase}{_deadline_of(phase, deadlines)}",
    }[missed]
    own = [frame for frame in attempt.waiting if frame.startswith("vllm/")]
    return ", in ".join([what, *(own or attempt.waiting)[:1]])


def _deadline_of(phase: Phase, deadlines: Deadlines) -> str:
    deadline_s = deadlines.phases_s.get(phase)
    return "" if deadline_s is None else f" (its deadline of {deadline_s:g} s)"


def _cause(attempt: Attempt) -> str:
    if seen := decisive(attempt):
        return _said(seen)
    end = attempt.exit
    if end.host_lost:
        return "the host that it was forked from went away"
    if end.out_of_memory:
        return "the kernel killed it for want of memory"
    if end.signal is not None:
        return f"ended by {signal_name(end.signal)}"
    if attempt.report is not None and attempt.report.failure is not None:
        return _said(attempt.report.failure.root)
    last_line = attempt.log_tail.rsplit("\n", 1)[-1]
    return ": ".join(filter(None, [f"exit code {end.code}", last_line]))


def _said(seen: ExceptionSeen) -> str:
    return f"{seen.type.rsplit('.', 1)[-1]}: {seen.message.strip() or 'no message'}"


def _raised(seen: ExceptionSeen) -> Iterator[str]:
    """What one line of cause has no room for."""
    if seen.where is not None:
        yield f"at {seen.where}"
    if len(seen.message) > LINE_CHARS or "\n" in seen.message.strip():
        yield from filter(None, map(str.rstrip, seen.message.splitlines()))


def _of_log(log_tail: str) -> list[str]:
    """From where Python says that it crashed, or else the end."""
    lines = [line.rstrip() for line in log_tail.splitlines() if line.strip()]
    crashes = [number for number, line in enumerate(lines) if FATAL in line]
    return lines[crashes[0] :] if crashes else lines[-EXCERPT_LINES:]
