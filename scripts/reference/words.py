"""orchestrator/completing/words.json: what a shell may complete, without asking the commands."""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic

from orchestrator.asked.conf_files import AXES
from orchestrator.asked.config import Config
from orchestrator.commands import COMMANDS
from orchestrator.commands.help import of
from scripts.reference import classes, kinds, said

RUNS = {"BASE", "CANDIDATE"}
CELLS = {"CELLS", "CELL-GLOB"}
VAGUE = {"NAME"}
"""What tells less than the flag."""

ANY = "*"


def text() -> str:
    known = {
        "commands": {name: _command(name, says) for name, says in COMMANDS.items()},
        "keys": dict(_keys()),
    }
    return json.dumps(known, indent=1, ensure_ascii=False) + "\n"


def _command(name: str, says: str) -> dict[str, Any]:
    taken = of(name).takes()
    return {
        "says": says,
        "words": [_place(each) for each in taken if not each.option_strings],
        "flags": [
            {"names": [*each.option_strings], "takes": each.nargs not in {0, "?"}, **_place(each)}
            for each in taken
            if each.option_strings
        ],
    }


def _place(action: argparse.Action) -> dict[str, Any]:
    kind = str(action.metavar or action.dest).upper()
    if kind in VAGUE:
        kind = action.dest.upper()
    return {
        "kind": "RUN" if kind in RUNS else "CELL" if kind in CELLS else kind,
        "many": action.nargs in {"*", "+"},
        "choices": [str(each) for each in action.choices or ()],
        "says": str(action.help or ""),
    }


def _keys() -> Iterator[tuple[str, dict[str, Any]]]:
    schema = pydantic.TypeAdapter(Config).json_schema()
    meanings = classes.reached_from(Config)
    yield from _below("", schema, Config, schema["$defs"], meanings)


def _below(
    begun: str,
    described: Mapping[str, Any],
    cls: type,
    definitions: Mapping[str, Any],
    meanings: Mapping[str, type],
) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, part in described["properties"].items():
        path = f"{begun}{key}"
        each = kinds.inside(part) if path in AXES else None
        reference = (each or part).get("$ref", "").rsplit("/", 1)[-1]
        inner = definitions.get(reference, {})
        if "properties" in inner:
            deeper = f"{path}.{ANY}." if each else f"{path}."
            yield from _below(deeper, inner, meanings[reference], definitions, meanings)
        else:
            says = said.of_attributes(cls).get(key, "")
            yield path, {"says": says, "choices": kinds.choices(part, definitions)}
