"""A text of parts, as much of each as there is room for: first what matters most. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.reports import wording

SEPARATOR = "\n\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    forms: tuple[str, ...]
    """The same thing, the fullest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Items that stand together. Those that matter most come first, of parts as of items."""

    thing: str
    """What each of its items is: `cell`."""

    begin: str = ""
    """Up to the first item, such as the head of a table."""

    items: tuple[Item, ...]
    end: str = ""
    joint: str = "\n"
    """Between two items."""

    can_wait: bool = False
    """Whether it gets only the room that the other parts leave."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    most: int
    size: Callable[[str], int] = len


def fit(first: str, parts: Sequence[Part], last: str, limit: Limit, everything: str) -> str:
    """
    *first*, *parts* and *last*. Of parts that can't wait, every item gets its shortest form before
    any gets a fuller one. What is left out is counted at the end, with where *everything* is.
    """
    shown = [_Shown(part) for part in parts]
    if limit.size(whole := _joined(first, shown, last)) <= limit.most:
        return whole
    for each in shown:
        each.forms.clear()
    room = limit.most - limit.size(_joined(first, [], _left_out(parts, everything), last))
    for can_wait in (False, True):
        alike = [each for each in shown if each.part.can_wait is can_wait]
        for each in alike:
            room -= each.shorten(room, limit.size)
        for each in alike:
            room -= each.lengthen(room, limit.size)
    missing = [each.missing() for each in shown]
    return _joined(first, shown, _left_out(missing, everything), last)


class _Shown:
    """As much of a part as is shown of it; all of it, at first."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.forms = [item.forms[0] for item in part.items]

    def text(self) -> str:
        return self._framed(self.part.joint.join(self.forms)) if self.forms else ""

    def missing(self) -> Part:
        return Part(thing=self.part.thing, items=self.part.items[len(self.forms) :])

    def shorten(self, room: int, size: Callable[[str], int]) -> int:
        """Show as many items as fit, each in its shortest form. Returns what that takes."""
        taken = size(SEPARATOR + self._framed(""))
        for item in self.part.items:
            taken += size(self.part.joint + item.forms[-1])
            if taken > room:
                break
            self.forms.append(item.forms[-1])
        return size(SEPARATOR + self.text()) if self.forms else 0

    def lengthen(self, room: int, size: Callable[[str], int]) -> int:
        """Show each of its items in the fullest form that there is room for."""
        taken = 0
        for number, form in enumerate(self.forms):
            for fuller in self.part.items[number].forms:
                more = size(fuller) - size(form)
                if taken + more <= room:
                    self.forms[number] = fuller
                    taken += more
                    break
        return taken

    def _framed(self, body: str) -> str:
        left = len(self.part.items) - len(self.forms)
        more = f"\n\n_and {wording.count(left, self.part.thing)} more_" if left else ""
        return f"{self.part.begin}{body}{more}{self.part.end}"


def _left_out(parts: Sequence[Part], everything: str) -> str:
    counts = Counter[str]()
    for part in parts:
        counts[part.thing] += len(part.items)
    missing = ", ".join(wording.count(count, thing) for thing, count in counts.items() if count)
    return f"**Left out for want of room: {missing}.** {everything}" if missing else ""


def _joined(first: str, shown: Sequence[_Shown], *last: str) -> str:
    texts = [first, *(each.text() for each in shown), *last]
    return SEPARATOR.join(text for text in texts if text) + "\n"
