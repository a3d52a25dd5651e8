"""docs/reference/cli.md: every command with its words, flags and examples."""

import argparse

from orchestrator.commands import COMMANDS
from orchestrator.commands.help import of
from orchestrator.commands.parsing import PROGRAM, Parser
from scripts.reference.markdown import code, codes, page, table

INTRODUCTION = f"""\
`{PROGRAM} help` has first steps, `{PROGRAM} COMMAND --help` what is below.
`python -m orchestrator ...` is `{PROGRAM} run ...`, and so is `{PROGRAM} KEY=VALUE ...`. Flags may
stand anywhere among the other words. Exit codes have [a page of their own](exit-codes.md).
"""


def text() -> str:
    return page(
        "Commands",
        "the parsers in orchestrator/commands",
        INTRODUCTION,
        table(
            ["command", "does"],
            ([f"[`{name}`](#{name})", says] for name, says in COMMANDS.items()),
        ),
        *(part for name in COMMANDS for part in _section(of(name))),
    )


def _section(parser: Parser) -> list[str]:
    taken = parser.takes()
    usage = [parser.prog, *(_placed(each) for each in taken if not each.option_strings)]
    if any(each.option_strings for each in taken):
        usage.append("[FLAGS]")
    return [
        f"## {parser.command}",
        " ".join((parser.description or "").split()),
        f"```\n{' '.join(usage)}\n```",
        table(["word or flag", "what it is"], ([_named(each), _what(each)] for each in taken)),
        "\n".join(["```", *_examples(parser), "```"]),
    ]


def _placed(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return {"*": f"[{name} ...]", "+": f"{name} ...", "?": f"[{name}]"}.get(str(action.nargs), name)


def _named(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(_placed(action))
    takes = action.nargs != 0
    value = f" {action.metavar or 'VALUE'}" if takes else ""
    return ", ".join(code(f"{flag}{value}") for flag in action.option_strings)


def _what(action: argparse.Action) -> str:
    parts = [str(action.help or "")]
    if action.choices and str(action.metavar or "") not in {"SHELL", "COMMAND"}:
        parts.append(f"one of {codes(map(str, action.choices))}")
    if isinstance(action.default, str) and action.default is not argparse.SUPPRESS:
        parts.append(f"default {code(action.default)}")
    return "; ".join(part for part in parts if part)


def _examples(parser: Parser) -> list[str]:
    width = max(map(len, parser.examples))
    return [f"{PROGRAM} {words:<{width}}  # {what}" for words, what in parser.examples.items()]
