"""`vllm-matrix COMMAND ...`; the only place where an error becomes an exit."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from orchestrator import discretion
from orchestrator.asked.conf_files import nearest
from orchestrator.errors import ClusterError, ConfigError, RunError, StoppedError
from orchestrator.supervise import supervised

COMMANDS = ("run", "plan", "nodes", "submit", "attach", "report", "explain", "gate")
HELP = ("-h", "--help", "help")

USAGE = """\
usage: vllm-matrix COMMAND ...

  run [-m] [KEY=VALUE ...]       run a suite (suite=demo) or cells (hardware=[cpu] model=[...] ...)
  plan [-m] [KEY=VALUE ...]      which cell would go where; starts nothing
  nodes [--address ADDRESS]      what the cluster has
  submit [--address URL] [KEY=VALUE ...]   run on a cluster, through its Jobs API, and follow it
  attach [SUBMISSION]            come back to a run that was submitted
  report RUN [--format FORMAT]   the matrix again: terminal, pr, md, json, junit
  explain RUN CELL               everything known of one cell
  gate RUN                       may it ship?

`python -m orchestrator KEY=VALUE ...` is `vllm-matrix run KEY=VALUE ...`.
Exit codes: 0 ships, 1 blocked, 2 configuration or usage, 3 nothing to run,
4 infrastructure, 130 interrupted.
"""


def main() -> None:
    words = sys.argv[1:]
    _open_what_is_closed()
    discretion.begin()
    discretion.hide_typed(words)
    sys.exit(_supervised(words) if _runs(words) else answer(words))


def _open_what_is_closed() -> None:
    """Or else the next files that are opened would be taken for these."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The lowest number that is free.
            setattr(sys, name, Path(os.devnull).open("r+"))  # noqa: SIM115  for good
            os.set_inheritable(number, True)


def answer(words: Sequence[str]) -> int:
    """The exit code of a command line."""
    try:
        return _command(words)()
    except RunError as error:
        return _told(error)
    except OSError as error:
        return _told(ClusterError(f"{error.filename or 'the output'}: {error.strerror or error}"))
    except KeyboardInterrupt:
        return StoppedError.exit_code


def _supervised(words: Sequence[str]) -> int:
    try:
        return supervised(lambda: answer(words))
    except RunError as error:
        return _told(error)


def _runs(words: Sequence[str]) -> bool:
    """Whether the words are of the command that runs cells, whose name may be left out."""
    return not words or words[0] not in {*COMMANDS, *HELP} - {"run"}


def _told(error: RunError) -> int:
    Console(stderr=True, highlight=False, soft_wrap=True, emoji=False).print(
        f"[bold red]error:[/] {escape(str(error))}"
    )
    return error.exit_code


def _command(words: Sequence[str]) -> Callable[[], int]:
    match [*words]:
        case [word, *_] if word in HELP:
            return _usage
        case [name, *rest] if name in COMMANDS:
            module = import_module(f"orchestrator.commands.{name}")
            return lambda: int(module.main(rest))
        case [name, *_] if "=" not in name and not name.startswith(("-", "+", "~")):
            allowed = ", ".join(COMMANDS)
            raise ConfigError(
                f'there is no command "{name}"; commands: {allowed}.{nearest(name, COMMANDS)}'
            )
        case _:
            module = import_module("orchestrator.commands.run")
            return lambda: int(module.main(words))


def _usage() -> int:
    sys.stdout.write(USAGE)
    return 0


if __name__ == "__main__":
    main()
