"""What pydantic finds wrong, in words for the author of a file."""

from collections.abc import Callable, Sequence
from typing import Any

import pydantic

from orchestrator.asked.conf_files import nearest

KEY = "[key]"
"""As pydantic calls a key that is wrong itself, behind that key."""


def explain(mistake: Any, place_of: Callable[..., str], adapter: pydantic.TypeAdapter[Any]) -> str:
    """File, key, what is wrong, what is allowed and the nearest name, in one line."""
    path = [str(part) for part in mistake["loc"]]
    place = place_of(*(path[:-2] if path[-1] == KEY else path))
    match mistake["type"]:
        case "unexpected_keyword_argument":
            allowed = _allowed_keys(path[:-1], adapter)
            return (
                f'{place}: there is no key "{path[-1]}"; allowed: {", ".join(allowed)}.'
                f"{nearest(path[-1], allowed)}"
            )
        case "missing" | "missing_argument":
            return f"{place}: is missing"
        case "literal_error" | "enum":
            expected = mistake["ctx"]["expected"]
            allowed = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
            value = str(mistake["input"])
            return f'{place}: "{value}" is not one of {expected}.{nearest(value, allowed)}'
        case _:
            said = mistake["msg"].removeprefix("Value error, ")
            return f"{place}: {said}, but it is {mistake['input']!r}"


def _allowed_keys(path: Sequence[str], adapter: pydantic.TypeAdapter[Any]) -> list[str]:
    """The keys of the class that describes *path*, found by walking the annotations."""
    schema = adapter.json_schema()
    place: dict[str, Any] = schema
    for part in path:
        place = _inside(_resolve(place, schema), part)
    return sorted(_resolve(place, schema).get("properties", {}))


def _resolve(place: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in place:
        return _resolve(schema["$defs"][place["$ref"].rsplit("/", 1)[-1]], schema)
    for option in place.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolve(option, schema)
    return place


def _inside(place: dict[str, Any], part: str) -> dict[str, Any]:
    if part in (properties := place.get("properties", {})):
        found: dict[str, Any] = properties[part]
        return found
    by_pattern = [*place.get("patternProperties", {}).values()]
    items: Any = (
        place.get("items") or place.get("additionalProperties") or next(iter(by_pattern), {})
    )
    return items if isinstance(items, dict) else {}
