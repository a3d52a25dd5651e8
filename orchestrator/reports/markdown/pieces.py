"""What Markdown is made of. What comes in here is Markdown already, but for titles."""

from collections.abc import Iterable

from orchestrator.reports.fitting import Item, Part
from orchestrator.reports.foreign import html, prose


def section(thing: str, title: str, items: Iterable[Item], head: str = "") -> Part:
    return Part(thing=thing, begin=f"### {prose(title)}\n\n{head}", items=tuple(items))


def folded(thing: str, title: str, items: Iterable[Item], head: str = "") -> Part:
    """Only the title is seen until somebody opens it."""
    begin, end = fold(title)
    return Part(thing=thing, begin=begin + head, items=tuple(items), end=end, can_wait=True)


def fold(title: str) -> tuple[str, str]:
    """What comes before and behind; without the empty lines, GitHub would show Markdown as text."""
    return f"<details>\n<summary>{html(title)}</summary>\n\n", "\n\n</details>"


def head(columns: Iterable[str]) -> str:
    columns = [*columns]
    return f"{_row(columns)}\n{'|---' * len(columns)}|\n"


def row(cells: Iterable[str]) -> Item:
    return Item(forms=(_row(cells),))


def bullet(text: str) -> Item:
    return Item(forms=(f"- {text}",))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
