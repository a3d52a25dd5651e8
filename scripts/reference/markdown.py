"""Pieces of Markdown that say where they come from."""

from collections.abc import Iterable, Sequence


def page(title: str, made_from: str, *parts: str) -> str:
    head = f"# {title}"
    note = (
        f"<!-- Made from {made_from} by `python -m scripts.reference`: change that, not this. -->"
    )
    return "\n\n".join([head, note, *(part.strip("\n") for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def code(word: str) -> str:
    return f"`{word}`"


def codes(words: Iterable[str]) -> str:
    return ", ".join(map(code, words))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
