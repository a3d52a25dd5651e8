"""What a value has to be, in words, from a JSON schema."""

from collections.abc import Mapping
from typing import Any

from scripts.reference.markdown import code

Schema = Mapping[str, Any]
NULL = "null"
LIMITS = {
    "ge": "≥",
    "minimum": "≥",
    "gt": ">",
    "exclusiveMinimum": ">",
    "le": "≤",
    "maximum": "≤",
}


def in_words(part: Schema, definitions: Schema) -> str:  # noqa: PLR0911  a case per kind
    match part:
        case {"$ref": str(reference)}:
            return _named(reference.rsplit("/", 1)[-1], definitions)
        case {"anyOf": options}:
            return " or ".join(in_words(option, definitions) for option in options)
        case {"enum": values}:
            return ", ".join(code(value) for value in values)
        case {"const": value}:
            return code(str(value))
        case {"type": "array", "items": items}:
            return f"list of {in_words(items, definitions)}"
        case {"type": "array"}:
            return "list"
        case {"type": "object"}:
            return _mapping(part, definitions)
        case {"type": "string", "format": wanted}:
            return str(wanted)
        case {"type": str(kind)}:
            limits = [f"{sign} {part[name]}" for name, sign in LIMITS.items() if name in part]
            return f"{code(NULL) if kind == NULL else kind} {', '.join(limits)}".strip()
        case _:
            return "anything"


def choices(part: Schema, definitions: Schema) -> list[str]:  # noqa: PLR0911  a case per kind
    """What it can be, where that is a few words; of a list, what can be in it."""
    match part:
        case {"$ref": str(reference)}:
            return choices(definitions[reference.rsplit("/", 1)[-1]], definitions)
        case {"anyOf": options}:
            return [word for option in options for word in choices(option, definitions)]
        case {"enum": values}:
            return [str(value) for value in values]
        case {"const": value}:
            return [str(value)]
        case {"type": "array", "items": items}:
            return choices(items, definitions)
        case {"type": "boolean"}:
            return ["true", "false"]
        case _:
            return []


def inside(part: Schema) -> Schema | None:
    """Of a mapping by name, what each name has."""
    if patterns := part.get("patternProperties"):
        return dict(next(iter(patterns.values())))
    more = part.get("additionalProperties")
    return more if isinstance(more, dict) else None


def _named(name: str, definitions: Schema) -> str:
    found = definitions[name]
    return f"[{name}](#{name.lower()})" if "properties" in found else in_words(found, definitions)


def _mapping(part: Schema, definitions: Schema) -> str:
    names = part.get("propertyNames")
    what = "one of " + in_words(names, definitions) if names else "name"
    each = inside(part)
    return f"mapping: {what} to {in_words(each, definitions) if each else 'anything'}"
