"""How the engine's other processes ended, for when none of them could say why."""

import multiprocessing.process
import signal

from jobs.contract.seen import ExceptionSeen

CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}


class ProcessEnded(Exception):  # noqa: N818 - never raised: it names a link of a failure's chain
    """A process ended before it should have."""


def ended() -> tuple[ExceptionSeen, ...]:
    """
    The end that is most likely the cause, as the outermost link of a failure's chain: any
    exception that says something says more.

    vLLM ends the others when one has ended, so that signals by which it does so count least.
    """
    likely = sorted(_ends(), key=lambda end: _rank(end[1]))[:1]
    kind = f"{__name__}.{ProcessEnded.__qualname__}"
    return tuple(ExceptionSeen(type=kind, message=f"{name} {_told(code)}") for name, code in likely)


def _ends() -> list[tuple[str, int]]:
    # No public list holds those that were waited for.
    processes = list(multiprocessing.process._dangling)  # type: ignore[attr-defined]  # noqa: SLF001
    return [(each.name, each.exitcode) for each in processes if each.pid and each.exitcode]


def _rank(code: int) -> int:
    if -code in CRASHES:
        return 0
    return 1 if code > 0 else 2


def _told(code: int) -> str:
    return f"exited with code {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"
