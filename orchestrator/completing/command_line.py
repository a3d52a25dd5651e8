"""Which words may stand where the cursor is."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from orchestrator.completing import here, overrides

Candidates = dict[str, str]
"""Each with what is said of it."""

ANY_COMMAND = "run"
"""The name that may be left out."""


def candidates(known: Mapping[str, Any], before: Sequence[str], prefix: str) -> Candidates:
    """*before*: the words between the program's name and the cursor."""
    commands: Mapping[str, Any] = known["commands"]
    if not before:
        first = {name: of["says"] for name, of in commands.items()}
        first |= {"--help": "first steps", "--version": ""}
        if named := _beginning(prefix, first):
            return named
    name, *words = before if before and before[0] in commands else [ANY_COMMAND, *before]
    return _of_command(known, commands[name], words, prefix)


def _of_command(
    known: Mapping[str, Any], command: Mapping[str, Any], before: Sequence[str], prefix: str
) -> Candidates:
    flags = {flag: each for each in command["flags"] for flag in each["names"]}
    words, open_flag = _standing(flags, before)
    if open_flag is not None:
        return _beginning(prefix, _values(known, flags[open_flag], words, before, prefix))
    if prefix.startswith("-"):
        name, equals, value = prefix.partition("=")
        if equals and name in flags:
            found = _beginning(value, _values(known, flags[name], words, before, value))
            return {f"{name}={each}": says for each, says in found.items()}
        return _beginning(prefix, {flag: each["says"] for flag, each in flags.items()})
    places = command["words"]
    if not places:
        return {}
    place = places[min(len(words), len(places) - 1)]
    if len(words) >= len(places) and not place["many"]:
        return {}
    return _beginning(prefix, _values(known, place, words, before, prefix))


def _standing(flags: Mapping[str, Any], before: Sequence[str]) -> tuple[list[str], str | None]:
    """The words that are no flags, and the flag whose value comes next."""
    words: list[str] = []
    waiting: str | None = None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            waiting = word if word in flags and flags[word]["takes"] else None
        else:
            words.append(word)
    return words, waiting


def _values(
    known: Mapping[str, Any],
    place: Mapping[str, Any],
    words: Sequence[str],
    before: Sequence[str],
    prefix: str,
) -> Candidates:
    if place["choices"]:
        return dict.fromkeys(place["choices"], "")
    kinds: dict[str, Callable[[], Candidates]] = {
        "COMMAND": lambda: {name: of["says"] for name, of in known["commands"].items()},
        "KEY=VALUE": lambda: overrides.candidates(known["keys"], _folders(before), prefix),
        "RUN": lambda: here.folders(prefix) if "/" in prefix else here.runs(prefix),
        "POLICY": lambda: dict.fromkeys(overrides.names("gate", _folders(before)), ""),
        "CELL": lambda: here.cells(words, prefix),
        "SUBMISSION": here.submissions,
        "FOLDER": lambda: here.folders(prefix),
        "FILE": lambda: here.files(prefix),
    }
    return kinds.get(place["kind"], dict)()


def _folders(before: Sequence[str]) -> list[Path]:
    """Those of `--config-dir`."""
    named = [after for word, after in pairwise(before) if word in {"-cd", "--config-dir"}]
    named += [word.partition("=")[2] for word in before if word.startswith("--config-dir=")]
    return [Path(name).expanduser() for name in named if name]


def _beginning(prefix: str, found: Mapping[str, str]) -> Candidates:
    return {word: says for word, says in found.items() if word.startswith(prefix)}
