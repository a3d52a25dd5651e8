"""`vllm-matrix COMMAND ...`; the only place where an error becomes an exit."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from orchestrator import discretion, github
from orchestrator.commands import COMMANDS, unknown
from orchestrator.errors import SHIPS, ClusterError, ConfigError, RunError, StoppedError
from orchestrator.supervise import supervised
from orchestrator.version import VERSION

HELP = ("-h", "--help", "help")
VERSIONS = ("-V", "--version", "version")


def main() -> None:
    words = sys.argv[1:]
    _open_what_is_closed()
    discretion.begin()
    discretion.hide_typed(words)
    with github.deaf():
        code = _supervised(words) if _runs(words) else answer(words)
    sys.exit(code)


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
    # Python's own exit code for it means "blocked" here.
    except Exception:  # noqa: BLE001  a mistake of ours
        traceback.print_exc()
        return RunError.exit_code


def _supervised(words: Sequence[str]) -> int:
    try:
        return supervised(lambda: answer(words))
    except RunError as error:
        return _told(error)


def _runs(words: Sequence[str]) -> bool:
    """Whether the words are of a command that runs cells; the name of `run` may be left out."""
    return bool(words) and words[0] not in {*COMMANDS, *HELP, *VERSIONS} - {"run", "bisect"}


def _told(error: RunError) -> int:
    Console(stderr=True, highlight=False, soft_wrap=True, emoji=False).print(
        f"[bold red]error:[/] {escape(str(error))}"
    )
    if github.listens():
        said = github.Annotation(level="error", title="vllm-matrix", message=str(error))
        github.annotate([said])
    return error.exit_code


def _command(words: Sequence[str]) -> Callable[[], int]:
    match [*words]:
        case []:
            # A script whose variable is empty must not be told that all is well.
            return lambda: _helped([]) or ConfigError.exit_code
        case [word, *rest] if word in HELP:
            return lambda: _helped(rest)
        case [word] if word in VERSIONS:
            return _version
        case [name, *rest] if name in COMMANDS:
            module = import_module(f"orchestrator.commands.{name}")
            return lambda: int(module.main(rest))
        case [name, *_] if "=" not in name and not name.startswith(("-", "+", "~")):
            raise unknown(name)
        case _:
            module = import_module("orchestrator.commands.run")
            return lambda: int(module.main(words))


def _helped(words: Sequence[str]) -> int:
    return int(import_module("orchestrator.commands.help").main(words))


def _version() -> int:
    sys.stdout.write(f"vllm-matrix {VERSION}\n")
    return SHIPS


if __name__ == "__main__":
    main()
