"""Pieces of shell scripts: whatever text goes in, it stays text."""

import base64
import shlex
import textwrap
from collections.abc import Iterable, Iterator

from orchestrator.discretion import plain

WIDTH = 100


def comment(text: str) -> Iterator[str]:
    """One paragraph, of which nothing can get out of the comment."""
    line = " ".join(str(plain(text)).split())
    yield from (f"# {part}" for part in textwrap.wrap(line, WIDTH - 2))


def quoted(text: str) -> str:
    return shlex.quote(text)


def exported(name: str, value: str) -> str:
    return f"export {name}={quoted(value)}"


def here(command: str, text: str, rest: str = "") -> Iterator[str]:
    """*command* with *text* as its input, to the letter; *rest* of its line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    mark = "END"
    while mark in lines:
        mark += "_"
    yield f"{command} <<'{mark}'{rest}"
    yield from lines
    yield mark


def unpacked(folder: str, archive: bytes) -> Iterator[str]:
    """A tar.gz laid into a folder."""
    text = base64.b64encode(archive).decode()
    lines = "\n".join(textwrap.wrap(text, WIDTH))
    yield from here("base64 -d", lines, f" | tar -xzf - -C {quoted(folder)}")


def steps(*parts: Iterable[str]) -> Iterator[str]:
    """With a blank line between them."""
    for part in parts:
        if lines := [*part]:
            yield ""
            yield from lines
