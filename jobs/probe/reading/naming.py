"""How vLLM's objects are named in a report."""

from typing import Any


def class_path(thing: Any) -> str:
    """Module and qualified name of a class, or of an object's class."""
    kind = thing if isinstance(thing, type) else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def name_of(value: Any) -> str | None:
    """An enum member's name, another value's text."""
    return None if value is None else str(getattr(value, "name", value)).removeprefix("torch.")


def follow(thing: Any, path: str) -> Any:
    """`a.b.c`, or None where it ends early: versions differ in what they have."""
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return thing
