"""Hydra's words: which key can stand there, and what it can be."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from orchestrator.asked.conf_files import AXES, CONF

NO_GROUP = "patches"


def candidates(keys: Mapping[str, Any], folders: Sequence[Path], prefix: str) -> dict[str, str]:
    """*keys*: all that the configuration can say, with `*` for a name of one's own."""
    bare = prefix.lstrip("+~")
    marks = prefix[: len(prefix) - len(bare)]
    groups = _groups([CONF, *folders])
    key, equals, value = bare.partition("=")
    if equals:
        found = {f"{key}={each}": "" for each in _values(keys, groups, key, value)}
    else:
        found = dict(_keys(keys, groups, key))
    return {f"{marks}{word}": says for word, says in found.items()}


def names(group: str, folders: Sequence[Path]) -> list[str]:
    return _groups([CONF, *folders]).get(group, [])


def _groups(folders: Sequence[Path]) -> dict[str, list[str]]:
    groups: dict[str, set[str]] = {}
    for file in chain.from_iterable(folder.glob("*/*.yaml") for folder in folders):
        if file.parent.name != NO_GROUP:
            groups.setdefault(file.parent.name, set()).add(file.stem)
    return {group: sorted(names) for group, names in groups.items()}


def _keys(
    keys: Mapping[str, Any], groups: Mapping[str, Sequence[str]], begun: str
) -> Iterator[tuple[str, str]]:
    axis, dot, rest = begun.partition(".")
    if dot and axis in AXES:
        yield from _keys_of_entries(keys, axis, groups.get(axis, ()), rest)
        return
    yield from ((f"{group}=", f"{len(names)} files") for group, names in groups.items())
    if begun:
        yield from ((f"{axis}.", "its keys") for axis in AXES)
    for key, known in keys.items():
        if key.partition(".")[0] not in AXES:
            yield f"{key}=", known["says"]


def _keys_of_entries(
    keys: Mapping[str, Any], axis: str, names: Sequence[str], begun: str
) -> Iterator[tuple[str, str]]:
    """Of one that is named, what it can say; of several, their names."""
    begun_name = begun.partition(".")[0]
    matching = [name for name in names if name.startswith(begun_name)]
    if "." in begun:
        matching = [begun_name]
    if len(matching) > 1:
        yield from ((f"{axis}.{name}.", "") for name in matching)
        return
    for name in matching:
        for key, known in keys.items():
            if key.startswith(f"{axis}.*."):
                yield f"{axis}.{name}.{key.removeprefix(f'{axis}.*.')}=", known["says"]


def _values(
    keys: Mapping[str, Any], groups: Mapping[str, Sequence[str]], key: str, value: str
) -> Iterator[str]:
    head, begun = _split(value)
    if key in groups:
        taken = head.strip("[,").split(",")
        allowed = [name for name in groups[key] if name not in taken]
    else:
        allowed = _known(keys, key).get("choices", [])
    matching = [name for name in allowed if name.startswith(begun)]
    for name in matching:
        if head.startswith("[") and (name == begun or len(matching) == 1):
            yield from (f"{head}{name},", f"{head}{name}]")
        else:
            yield f"{head}{name}"


def _split(value: str) -> tuple[str, str]:
    """What of a list is there already, and the name that is begun."""
    at = max(value.rfind(","), value.rfind("[")) + 1
    return value[:at], value[at:]


def _known(keys: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    axis, *rest = key.split(".")
    pattern = ".".join([axis, "*", *rest[1:]]) if axis in AXES else key
    found: Mapping[str, Any] = keys.get(pattern, {})
    return found
