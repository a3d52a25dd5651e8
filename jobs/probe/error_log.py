"""
What the other processes of an engine died of.

With several processes the probe sees a wrapper; the cause is only in the log of
the process that had it. vLLM configures its logging in each of them from a file
that we write, and a logging class of ours puts every logged exception where the
probe finds it.
"""

import copy
import dataclasses
import faulthandler
import json
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from jobs import secrets
from jobs.contract.seen import ExceptionSeen
from jobs.probe import environment, exceptions, files

ERRORS = "errors.jsonl"
CONFIG = "logging.json"
CONFIG_VARIABLE = "VLLM_LOGGING_CONFIG_PATH"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedError:
    pid: int
    process: str
    functions: tuple[str, ...]
    """What the exception passed through, the outermost first."""

    chain: tuple[ExceptionSeen, ...]


class ErrorLog(logging.Handler):
    """Leaves each logged exception as one line of JSON; made by vLLM's logging set-up."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        arm_stack_dumps()

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error = _logged(record, record.exc_info[1])
            shown = secrets.of_this_process().value(dataclasses.asdict(error))
            files.append_line(environment.folder() / ERRORS, json.dumps(shown))


def arm_stack_dumps() -> None:
    """On SIGUSR1 write every thread's stack to the log: what a cell that hangs was doing."""
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)


def configure_children(folder: Path) -> None:
    """Let processes that the engine starts log as vLLM does, and to our file as well."""
    if CONFIG_VARIABLE in os.environ:
        return
    from vllm import logger

    config = copy.deepcopy(logger.DEFAULT_LOGGING_CONFIG)
    config["handlers"]["errors"] = {"class": f"{ErrorLog.__module__}.{ErrorLog.__qualname__}"}
    config["loggers"]["vllm"]["handlers"].append("errors")
    files.replace(folder / CONFIG, json.dumps(config))
    os.environ[CONFIG_VARIABLE] = str(folder / CONFIG)


def first_elsewhere(folder: Path) -> LoggedError | None:
    """The first error of another process: what came after it is its echo."""
    path = folder / ERRORS
    lines = path.read_text().splitlines() if path.exists() else []
    for raw in map(json.loads, lines):
        if raw["pid"] != os.getpid():
            return LoggedError(
                pid=raw["pid"],
                process=raw["process"],
                functions=tuple(raw["functions"]),
                chain=tuple(ExceptionSeen(**seen) for seen in raw["chain"]),
            )
    return None


def _logged(record: logging.LogRecord, error: BaseException) -> LoggedError:
    return LoggedError(
        pid=os.getpid(),
        process=str(getattr(record, "vllm_process_name", record.processName)),
        functions=exceptions.functions(error),
        chain=exceptions.chain(error),
    )
