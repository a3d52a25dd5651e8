"""
Everything that can stop a run, each with the exit code CI sees.

* RunError
  + ConfigError        2  conf/, a patch or the command line does not make sense
  + NothingToRunError  3  the selection matched no cell
  + ClusterError       4  Ray, a node, a disk or the network failed; says nothing about a build
  + StoppedError      130  somebody stopped the run; what had finished is kept

A release that is blocked is an answer, not an error: the gate returns it and
the command exits with 1.
"""

import signal
from collections.abc import Iterable

SHIPS, BLOCKED = 0, 1

EXIT_CODES = {
    0: "ships (run, gate); shown (the others)",
    1: "blocked",
    2: "the configuration, a patch or the command line does not make sense",
    3: "nothing to run",
    4: "infrastructure: Ray, a node, a disk or the network",
    70: "a mistake in vllm-matrix itself, with its traceback",
    130: "interrupted; what finished is kept, and the same command goes on",
}

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, and a terminal that was closed."""

ONE_PRESS_S = 0.5
"""
`timeout` signals a process and then its group, Ray a job's process and then its children: so
soon after the first, a second signal is the same wish to stop.
"""


def heeded() -> tuple[signal.Signals, ...]:
    """Of STOPPING. What is ignored from the start stays so: by `nohup`, or in the background."""
    return tuple(each for each in STOPPING if signal.getsignal(each) is not signal.SIG_IGN)


class RunError(Exception):
    exit_code = 70
    """Of a mistake of ours."""


class ConfigError(RunError):
    exit_code = 2

    def __init__(self, summary: str, mistakes: Iterable[str] = ()) -> None:
        """*summary* is one line; every mistake found gets a line of its own below it."""
        self.mistakes = tuple(mistakes)
        lines = [mistake.replace("\n", "\n    ") for mistake in self.mistakes]
        super().__init__("\n".join([summary, *(f"  - {line}" for line in lines)]))


class NothingToRunError(RunError):
    exit_code = 3


class ClusterError(RunError):
    exit_code = 4


class StoppedError(RunError):
    """By one of the signals in STOPPING."""

    exit_code = 130
