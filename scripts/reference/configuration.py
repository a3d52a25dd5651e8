"""docs/reference/configuration.md: every key that conf/ and the command line may set."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import EnumType
from pathlib import Path
from typing import Any

import pydantic
import yaml

from orchestrator.asked.conf_files import AXES, CONF
from orchestrator.asked.config import Config
from scripts.reference import classes, kinds, said
from scripts.reference.markdown import code, codes, page, table

INTRODUCTION = """\
Every key, its type, and what it is unless somebody says otherwise. How files and words become
a configuration, with examples, is in [Configuration](../configuration.md).
"""


def text() -> str:
    schema = pydantic.TypeAdapter(Config).json_schema()
    definitions = schema["$defs"]
    reached = classes.reached_from(Config)
    places: dict[str, list[str]] = {}
    _find_places(schema, definitions, "", places)
    return page(
        "Keys of the configuration",
        "orchestrator/asked/config.py, what it imports, and conf/config.yaml",
        INTRODUCTION,
        "## Top level",
        _top_level(schema, definitions),
        *(
            part
            for name, cls in reached.items()
            if is_dataclass(cls) and cls is not Config
            for part in _section(name, cls, definitions, places[name])
        ),
        "## Words with a meaning",
        "Values that are one of a few words, where the word alone does not say it.",
        *(part for cls in reached.values() for part in _words(cls)),
        "## Files",
        table(
            ["in", "there are"],
            ((f"`conf/{group.name}/`", codes(_names(group))) for group in _groups()),
        ),
    )


def _top_level(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    defaults = yaml.safe_load((CONF / "config.yaml").read_text())
    rows = []
    for key, part in schema["properties"].items():
        meaning = said.of_attributes(Config).get(key, "")
        default = "" if key in {*AXES, "suite", "gate", "cluster"} else _value(defaults.get(key))
        rows.append([code(key), kinds.in_words(part, definitions), default, meaning])
    return table(["key", "type", "default", "meaning"], rows)


def _find_places(
    described: Mapping[str, Any],
    definitions: Mapping[str, Any],
    begun: str,
    places: dict[str, list[str]],
) -> None:
    """Where each class stands, as a path of keys."""
    for key, part in described["properties"].items():
        for name, where in _held(part, f"{begun}{key}"):
            if "properties" in definitions[name]:
                places.setdefault(name, []).append(where)
                _find_places(definitions[name], definitions, f"{where}.", places)


def _held(part: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    if "$ref" in part:
        yield part["$ref"].rsplit("/", 1)[-1], where
    for option in part.get("anyOf", ()):
        yield from _held(option, where)
    if "items" in part:
        yield from _held(part["items"], f"{where}[]")
    if (each := kinds.inside(part)) is not None:
        yield from _held(each, f"{where}.NAME")


def _section(
    name: str, cls: type, definitions: Mapping[str, Any], places: Iterable[str]
) -> Iterator[str]:
    described = definitions[name]
    required = {*described.get("required", ())}
    yield f"## {name}"
    yield f"{codes(places)}. {said.of_class(cls)}".strip()
    yield table(
        ["key", "type", "default", "meaning"],
        (
            [
                code(key),
                kinds.in_words(part, definitions),
                "required" if key in required else _default(part),
                said.of_attributes(cls).get(key, ""),
            ]
            for key, part in described["properties"].items()
        ),
    )


def _words(cls: type) -> Iterator[str]:
    if isinstance(cls, EnumType) and (meanings := said.of_attributes(cls)):
        yield f"### {cls.__name__}"
        yield said.of_class(cls)
        names = [*cls.__members__]
        yield table(
            ["word", "meaning"], ([code(str(cls[name])), meanings.get(name, "")] for name in names)
        )


def _groups() -> list[Path]:
    return sorted({file.parent for file in CONF.glob("*/*.yaml")})


def _names(group: Path) -> list[str]:
    return sorted(file.stem for file in group.glob("*.yaml"))


def _default(part: Mapping[str, Any]) -> str:
    is_mapping = part.get("type") == "object" and "default" not in part
    return code("{}") if is_mapping else _value(part.get("default"))


def _value(value: Any) -> str:
    match value:
        case None:
            return code("null")
        case bool():
            return code(str(value).lower())
        case dict() if not any(value.values()):
            return ""
        case dict() | list() | tuple():
            return code(yaml.safe_dump(value, default_flow_style=True, width=1000).strip())
        case _:
            return code(str(value))
