"""
What the other processes of an engine died of.

With several processes the probe sees a wrapper; the cause is only in the log of
the process that had it. vLLM configures its logging in each of them from a file
that we write, and a logging class of ours puts the exception that ends a process
where the probe finds it.
"""

import contextlib
import copy
import dataclasses
import faulthandler
import json
import logging
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.contract.seen import ExceptionSeen
from jobs.probe import environment, exceptions, files

ERRORS = "errors.jsonl"
CONFIG = "logging.json"
CONFIG_VARIABLE = "VLLM_LOGGING_CONFIG_PATH"

ENDS = re.compile(r"^(Ray)?WorkerProc (failed|hit an exception)|^EngineCore (failed|encountered)")
"""
How vLLM logs what it does not survive, 0.26 to 0.32. Whatever else is logged with an
exception, as of a cache that can't be read, explains nothing.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedError:
    pid: int
    process: str
    functions: tuple[str, ...]
    """What the exception passed through, the outermost first."""

    chain: tuple[ExceptionSeen, ...]


class ErrorLog(logging.Handler):
    """Leaves an exception that ends its process as a line of JSON; vLLM's logging makes it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        arm_stack_dumps()

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and ENDS.search(record.getMessage()):
            process = getattr(record, "vllm_process_name", record.processName)
            leave(error, process=str(process))


def leave(error: BaseException, *, process: str) -> None:
    """Put what ended this process where the probe finds it."""
    line = json.dumps(dataclasses.asdict(_logged(error, process)))
    files.append_line(environment.folder() / ERRORS, line)


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
    elsewhere = (error for error in _all_logged(folder / ERRORS) if error.pid != os.getpid())
    return next(elsewhere, None)


def _all_logged(path: Path) -> Iterator[LoggedError]:
    """But for lines that are torn: a process may end while it writes."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    for line in lines:
        with contextlib.suppress(ValueError, LookupError, TypeError):
            yield _read(json.loads(line))


def _read(raw: dict[str, Any]) -> LoggedError:
    return LoggedError(
        pid=raw["pid"],
        process=raw["process"],
        functions=tuple(raw["functions"]),
        chain=tuple(ExceptionSeen(**seen) for seen in raw["chain"]),
    )


def _logged(error: BaseException, process: str) -> LoggedError:
    return LoggedError(
        pid=os.getpid(),
        process=process,
        functions=exceptions.functions(error),
        chain=exceptions.chain(error),
    )
