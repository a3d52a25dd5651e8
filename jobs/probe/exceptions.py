"""What an exception says: its whole chain, from the outermost to the root cause."""

import sys
import traceback
from collections.abc import Iterator

from jobs.contract.seen import ExceptionSeen

LONGEST_MESSAGE = 4000


def chain(error: BaseException) -> tuple[ExceptionSeen, ...]:
    return tuple(_seen(link) for link in links(error))


def links(error: BaseException) -> Iterator[BaseException]:
    """As Python prints them: the cause, or else the context unless it was suppressed."""
    met: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in met:
        met.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def functions(error: BaseException) -> tuple[str, ...]:
    """The functions that it passed through, of the whole chain, the outermost first."""
    return tuple(
        frame.name for link in links(error) for frame in traceback.extract_tb(link.__traceback__)
    )


def _seen(error: BaseException) -> ExceptionSeen:
    kind = type(error)
    return ExceptionSeen(
        type=f"{kind.__module__}.{kind.__qualname__}",
        message=_message(error),
        where=_where(error),
    )


def _message(error: BaseException) -> str:
    """Text that every encoding can carry, whatever the exception makes of itself."""
    try:
        text = str(error)
    # An exception of somebody else's: its own text may fail in any way.
    except BaseException as failed:  # noqa: BLE001
        return f"(its message can't be read: {type(failed).__name__})"
    return text[:LONGEST_MESSAGE].encode("utf-8", "backslashreplace").decode()


def _where(error: BaseException) -> str | None:
    """The innermost frame of vLLM's, which says more than the library that it called."""
    frames = [
        f"{_relative(frame.filename)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    own = [frame for frame in frames if frame.startswith("vllm/")]
    return next(reversed(own or frames), None)


def _relative(path: str) -> str:
    """Without the folder that it was imported from: the same on every machine."""
    folders = [entry for entry in sys.path if entry and path.startswith(f"{entry}/")]
    return path.removeprefix(f"{max(folders, key=len)}/") if folders else path
