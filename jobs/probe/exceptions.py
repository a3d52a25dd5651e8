"""What an exception says: its whole chain, from the outermost to the root cause."""

import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any

from jobs.contract.seen import ExceptionSeen
from jobs.probe import wording

MOST_LINKS = 100
"""Of a chain: as many from its beginning as from its end."""

TRACEBACKS = {"_RemoteTraceback", "RemoteTraceback"}
"""Not raised: by them a pool of processes says, as text, where the exception before was raised."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    error: BaseException
    handled: bool
    """It was only being handled when the one before it was raised."""


def chain(error: BaseException) -> tuple[ExceptionSeen, ...]:
    """What was never raised itself is told to be where the one before it was."""
    seen: list[ExceptionSeen] = []
    for link in _without_the_middle([*links(error)]):
        where = _where(link.error) or (seen[-1].where if seen else None)
        seen.append(_seen(link, where))
    return tuple(seen)


def links(error: BaseException) -> Iterator[Link]:
    """As Python prints them: members of a group, the cause, or else the context."""
    met: set[int] = set()
    open_ = [Link(error=error, handled=False)]
    while open_:
        link = open_.pop()
        if id(link.error) not in met:
            met.add(id(link.error))
            yield link
            open_ += reversed([*_below(link.error)])


def functions(error: BaseException) -> tuple[str, ...]:
    """The functions that it passed through, of the whole chain, the outermost first."""
    met = islice(links(error), MOST_LINKS)
    return tuple(frame.name for link in met for frame in _frames(link.error))


def _below(error: BaseException) -> Iterator[Link]:
    """What may be its cause; only the first is so for sure."""
    members = _own(error, "exceptions", BaseExceptionGroup) if _is_group(error) else ()
    for number, member in enumerate(members):
        yield Link(error=member, handled=number > 0)
    cause = _own(error, "__cause__")
    if cause is not None:
        if type(cause).__name__ not in TRACEBACKS:
            yield Link(error=cause, handled=bool(members))
    elif not _own(error, "__suppress_context__") and (context := _own(error, "__context__")):
        yield Link(error=context, handled=True)


def _is_group(error: BaseException) -> bool:
    return issubclass(type(error), BaseExceptionGroup)


def _own(error: BaseException, name: str, owner: type = BaseException) -> Any:
    """What Python keeps, whatever the exception's class has under that name."""
    return vars(owner)[name].__get__(error)


def _without_the_middle(chain: list[Link]) -> list[Link]:
    half = MOST_LINKS // 2
    return chain if len(chain) <= MOST_LINKS else chain[:half] + chain[-half:]


def _seen(link: Link, where: str | None) -> ExceptionSeen:
    kind = type(link.error)
    return ExceptionSeen(
        type=wording.plain(f"{kind.__module__}.{kind.__qualname__}"),
        message=wording.plain(wording.of(link.error)),
        where=where and wording.plain(where),
        handled=link.handled,
    )


def _where(error: BaseException) -> str | None:
    """The innermost frame of vLLM's, which says more than the library that it called."""
    frames = [f"{_relative(each.filename)}:{each.lineno} {each.name}" for each in _frames(error)]
    own = [frame for frame in frames if frame.startswith("vllm/")]
    return next(reversed(own or frames), None)


def _frames(error: BaseException) -> traceback.StackSummary:
    raised: TracebackType | None = _own(error, "__traceback__")
    return traceback.extract_tb(raised)


def _relative(path: str) -> str:
    """Without the folder that it was imported from: the same on every machine."""
    folders = [entry for entry in sys.path if entry and path.startswith(f"{entry}/")]
    return path.removeprefix(f"{max(folders, key=len)}/") if folders else path
