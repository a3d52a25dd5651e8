"""What there is to say, and where things are; or what one command takes."""

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from orchestrator.asked.conf_files import CONF
from orchestrator.commands import COMMANDS, unknown
from orchestrator.commands.parsing import PROGRAM, Parser
from orchestrator.errors import EXIT_CODES, SHIPS
from orchestrator.version import VERSION

FIRST_STEPS = {
    "You have a fix, and want to prove it in a pull request": (
        ("run suite=pr54826", "an example: fails before, passes after; needs no GPU"),
        ("plan suite=mine --config-dir my-conf", "your own diff and cells, see conf/"),
        ("report latest --format pr", "the comment to paste"),
    ),
    "You must say whether a release may ship": (
        ("plan suite=releases", "what would run where, and for how long"),
        ("run suite=releases", "said again, only what has changed runs"),
        ("gate latest", "yes or no, and why; an exit code as well"),
    ),
    "You must find out why a cell is not what you expect": (
        ("report latest", "the matrix, and what became of each request"),
        ("explain latest CELL", "its whole story, and a command that runs it alone"),
    ),
}

PLACES = {
    "runs/": "every run's folder, here; RUN is such a folder, its name, or `latest`",
    "--config-dir FOLDER": "your own hardware, models, backends, builds, suites and patches",
    "~/.cache/vllm-matrix": "builds; `cache=FOLDER` names another",
}


def parser() -> Parser:
    words = Parser("help", __doc__, {"help": "the whole of it", "help run": "one command"})
    words.add_argument("command", nargs="?", metavar="COMMAND", help=", ".join(COMMANDS))
    return words


def main(words: Sequence[str]) -> int:
    command = parser().parse_args(words).command
    sys.stdout.write(overview() if command is None else of(command).format_help())
    return SHIPS


def of(command: str) -> Parser:
    """Raises ConfigError where there is none."""
    if command not in COMMANDS:
        raise unknown(command)
    made = import_module(f"orchestrator.commands.{command}").parser()
    assert isinstance(made, Parser)
    return made


def overview() -> str:
    return "\n".join(
        [
            f"{PROGRAM} {VERSION}: which attention backend did target and draft really get,",
            "did the engine start, and may we release?",
            "",
            f"usage: {PROGRAM} COMMAND ...     {PROGRAM} COMMAND --help has examples of each",
            *_first_steps(),
            *_section("Commands", COMMANDS.items()),
            *_section("Where things are", [(_short(CONF), "what can be chosen"), *PLACES.items()]),
            *_section("Exit codes", ((str(code), says) for code, says in EXIT_CODES.items())),
            "",
            f"`python -m orchestrator KEY=VALUE ...` is `{PROGRAM} run KEY=VALUE ...`.",
            f"Tab completion: `{PROGRAM} help completion`.",
            "",
        ]
    )


def _first_steps() -> Iterable[str]:
    width = max(len(words) for steps in FIRST_STEPS.values() for words, _ in steps)
    for who, steps in FIRST_STEPS.items():
        yield from ("", f"{who}:")
        yield from (f"  {PROGRAM} {words:<{width}}  {what}" for words, what in steps)


def _section(title: str, lines: Iterable[tuple[str, str]]) -> Iterable[str]:
    lines = [*lines]
    width = max(len(name) for name, _ in lines)
    return ["", f"{title}:", *(f"  {name:<{width}}  {says}" for name, says in lines)]


def _short(folder: Path) -> str:
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
