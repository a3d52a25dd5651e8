"""
Which kind of failure an attempt shows. The kinds are data: rules/failures.yaml.

The order of evidence: a deadline that passed; the exceptions, captured where they were raised,
the innermost first; how the process ended, and whether the kernel says that memory ran out; the
phase. The log is read only where an engine died without any of these.
"""

import re
import signal

from jobs.contract.attempts import Attempt
from jobs.contract.seen import ExceptionSeen, Failure
from jobs.contract.terms import Check, EngineMode, Isolation, Phase
from orchestrator.taxonomy import EMULATION_LIMIT, taxonomy

PROBE_BROKE = 70
"""Exit code of a probe that raised outside of the engine."""

ENDED_BY_EXCEPTION = {1, PROBE_BROKE}
"""Exit codes of an interpreter that died of one. With any other, those in its log were survived."""

END_LINES = 6

LAST_WORDS = re.compile(
    # What vLLM puts before each line of a process: `(Worker pid=7) ERROR 12-02 11:00:00 [x.py:1] `
    r"^(?:\([^)]*\) )*(?:[A-Z]+ \S+ \S+ \[[^\]]+\] )?"
    r"(Fatal Python error|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|NotFound)): "
    r"(.*)$",
    re.MULTILINE,
)
"""An exception as Python prints it below its traceback."""


def classify(
    attempt: Attempt, mode: EngineMode = EngineMode.REAL, check: Check = Check.INIT
) -> str | None:
    """The category of the attempt's failure, or None if the probe did all it was asked."""
    if attempt.exit.timed_out:
        return _by_waiting(attempt.waiting)
    if did_all(attempt, check):
        return None
    if known := _known(_evidence(attempt), _phase(attempt), mode):
        return known[1]
    if _captured(attempt):
        first_step = _phase(attempt) is Phase.GENERATE
        return "first_step_failed" if first_step else "internal_error"
    return _by_end(attempt)


def did_all(attempt: Attempt, check: Check) -> bool:
    """Whether the probe came to the end of what it was asked, and ended in peace."""
    report = attempt.report
    if report is None or report.failure is not None or attempt.exit.code != 0:
        return False
    did = report.vllm_path is not None if check is Check.IMPORT else report.ready
    return did and report.phase is Phase.TEARDOWN


def decisive(attempt: Attempt) -> ExceptionSeen | None:
    """The exception by which the attempt is classified; of those that no rule knows, the root."""
    mode = attempt.report.engine_mode if attempt.report else EngineMode.REAL
    told = _evidence(attempt)
    if known := _known(told, _phase(attempt), mode):
        return known[0]
    return next(iter((*reversed(_captured(attempt)), *told)), None)


def explains(attempt: Attempt) -> bool:
    """Whether it shows more than that another part of its cell, on another node, has ended."""
    failure = _failure(attempt)
    if failure is None:
        return True
    captured = _captured(attempt)
    return bool(captured) and not any(map(_is_echo, captured))


def _is_echo(seen: ExceptionSeen) -> bool:
    return any(echo.search(seen.message) for echo in taxonomy().echoes)


def _by_waiting(frames: tuple[str, ...]) -> str:
    waits = (rule for rule in taxonomy().waiting if any(map(rule.where.search, frames)))
    return next((rule.category for rule in waits), "timeout")


def _evidence(attempt: Attempt) -> tuple[ExceptionSeen, ...]:
    """The exceptions that it may have died of, those that tell most first."""
    return _by_weight(_captured(attempt)) or _last_words(_end_of(attempt))


def _captured(attempt: Attempt) -> tuple[ExceptionSeen, ...]:
    """Where they were raised; without those that only say that another process failed."""
    failure = _failure(attempt)
    return tuple(filter(_says_something, failure.chain)) if failure else ()


def _by_weight(chain: tuple[ExceptionSeen, ...]) -> tuple[ExceptionSeen, ...]:
    """The innermost first; but what was only being handled comes after what was raised then."""
    links: list[ExceptionSeen] = []
    begin = 0
    for number, seen in enumerate(chain):
        begin = number if seen.handled else begin
        links.insert(begin, seen)
    return tuple(links)


def _end_of(attempt: Attempt) -> str:
    """The part of the log whose exceptions were not survived."""
    end = attempt.exit
    if end.host_lost or end.out_of_memory or end.signal is not None:
        return ""
    if _failure(attempt) is not None:
        return attempt.log_tail
    lines = attempt.log_tail.strip().splitlines()
    return "\n".join(lines[-END_LINES:]) if end.code in ENDED_BY_EXCEPTION else ""


def _last_words(log: str) -> tuple[ExceptionSeen, ...]:
    """Exceptions that the log shows, the last first, without those that name no cause."""
    words = (ExceptionSeen(type=each[1], message=each[2]) for each in LAST_WORDS.finditer(log))
    return tuple(reversed([*filter(_says_something, words)]))


def _says_something(seen: ExceptionSeen) -> bool:
    """More than that another process failed."""
    return not any(wrapper.search(seen.message) for wrapper in taxonomy().wrappers)


def _known(
    told: tuple[ExceptionSeen, ...], phase: Phase, mode: EngineMode
) -> tuple[ExceptionSeen, str] | None:
    """The first exception that a rule knows, and what it is called."""
    if limit := next(filter(_is_limit, told), None):
        return limit, EMULATION_LIMIT
    ways = (
        (vague, seen, rule) for vague in (False, True) for seen in told for rule in taxonomy().rules
    )
    for vague, seen, rule in ways:
        if rule.vague is vague and rule.fits(seen, phase, mode):
            return seen, rule.category
    return None


def _is_limit(seen: ExceptionSeen) -> bool:
    return seen.type.rsplit(".", 1)[-1] == "EmulationLimit"


def _failure(attempt: Attempt) -> Failure | None:
    return attempt.report.failure if attempt.report else None


def _phase(attempt: Attempt) -> Phase:
    failure = _failure(attempt)
    return failure.phase if failure else attempt.phase


def _by_end(attempt: Attempt) -> str:
    """How the process ended, where no exception says why."""
    end = attempt.exit
    if end.host_lost:
        return "ends_its_host" if attempt.isolation is Isolation.COLD else "host_lost"
    if end.out_of_memory:
        return "oom_host"
    if end.signal is not None:
        return taxonomy().signals.get(signal_name(end.signal), "worker_killed")
    return _by_code(attempt)


def _by_code(attempt: Attempt) -> str:
    if _failure(attempt) is not None:
        return "unknown"
    code = attempt.exit.code
    if attempt.report is None and code == 0 and attempt.phase is not Phase.IMPORT:
        return "report_lost"
    if code == PROBE_BROKE:
        return "probe_failed"
    return "build_broken" if attempt.phase is Phase.IMPORT else "engine_exited"


def signal_name(number: int) -> str:
    """Real-time signals have none."""
    names = {each.value: each.name for each in signal.Signals}
    return names.get(number, f"signal {number}")
