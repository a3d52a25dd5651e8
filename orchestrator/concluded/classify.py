"""
Which kind of failure an attempt shows. The kinds are data: rules/failures.yaml.

The order of evidence: a deadline that passed; the innermost exception, captured where it was
raised; how the process ended, and whether the kernel says that memory ran out; the phase. The
log is read only where an engine died without any of these.
"""

import re
import signal

from jobs.contract.attempts import Attempt
from jobs.contract.seen import ExceptionSeen, Failure
from jobs.contract.terms import Check, EngineMode, Isolation, Phase
from orchestrator.taxonomy import EMULATION_LIMIT, taxonomy

PROBE_BROKE = 70
"""Exit code of a probe that raised outside of the engine."""

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
    if attempt.report is not None and (failure := attempt.report.failure) is not None:
        return _by_exception(failure, mode) or _by_end(attempt, failure.phase, mode)
    if did_all(attempt, check):
        return None
    return _by_end(attempt, attempt.phase, mode)


def did_all(attempt: Attempt, check: Check) -> bool:
    """Whether the probe came to the end of what it was asked, and ended in peace."""
    report = attempt.report
    if report is None or report.phase is not Phase.TEARDOWN or attempt.exit.code != 0:
        return False
    return report.vllm_path is not None if check is Check.IMPORT else report.ready


def says_something(seen: ExceptionSeen) -> bool:
    """More than that another process failed."""
    return not any(wrapper.search(seen.message) for wrapper in taxonomy().wrappers)


def root(failure: Failure) -> ExceptionSeen:
    """
    The innermost exception that says more than that another process failed; a limit of the
    emulation says most, whatever came of it.
    """
    told = [*filter(says_something, reversed(failure.chain))] or [failure.root]
    return next(filter(_is_limit, told), told[0])


def last_words(log_tail: str) -> tuple[ExceptionSeen, ...]:
    """Exceptions that the log shows, in its order, without those that name no cause."""
    found = LAST_WORDS.finditer(log_tail)
    words = (ExceptionSeen(type=each[1], message=each[2]) for each in found)
    return tuple(filter(says_something, words))


def _by_waiting(frames: tuple[str, ...]) -> str:
    waits = (rule for rule in taxonomy().waiting if any(map(rule.where.search, frames)))
    return next((rule.category for rule in waits), "timeout")


def _by_exception(failure: Failure, mode: EngineMode) -> str | None:
    """None where the exceptions only say that another process failed."""
    chain = tuple(filter(says_something, failure.chain))
    if not chain:
        return None
    unexplained = "first_step_failed" if failure.phase is Phase.GENERATE else "internal_error"
    return _by_rule(chain, failure.phase, mode) or unexplained


def _by_rule(chain: tuple[ExceptionSeen, ...], phase: Phase, mode: EngineMode) -> str | None:
    """The innermost exception decides; an outer one only where no rule knows the inner."""
    if any(map(_is_limit, chain)):
        return EMULATION_LIMIT
    for seen in reversed(chain):
        for rule in taxonomy().rules:
            if rule.fits(seen, phase, mode):
                return rule.category
    return None


def _is_limit(seen: ExceptionSeen) -> bool:
    return seen.type.rsplit(".", 1)[-1] == "EmulationLimit"


def _by_end(attempt: Attempt, phase: Phase, mode: EngineMode) -> str:
    """How the process ended, and what the log says where that leaves open why."""
    end = attempt.exit
    if end.host_lost:
        return "ends_its_host" if attempt.isolation is Isolation.COLD else "host_lost"
    if end.out_of_memory:
        return "oom_host"
    if end.signal is not None:
        return taxonomy().signals.get(signal.Signals(end.signal).name, "worker_killed")
    if attempt.report is not None and attempt.report.failure is not None:
        return _by_rule(last_words(attempt.log_tail), phase, mode) or "unknown"
    if attempt.report is None and end.code == 0 and attempt.phase is not Phase.IMPORT:
        return "report_lost"
    return _by_rule(last_words(_end_of(attempt.log_tail)), phase, mode) or _by_code(attempt)


def _end_of(log_tail: str) -> str:
    """Where the exception stands that a process died of; those before it were survived."""
    return "\n".join(log_tail.strip().splitlines()[-END_LINES:])


def _by_code(attempt: Attempt) -> str:
    if attempt.exit.code == PROBE_BROKE:
        return "probe_failed"
    return "build_broken" if attempt.phase is Phase.IMPORT else "engine_exited"
