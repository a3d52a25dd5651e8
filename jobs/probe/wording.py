"""Texts of others, as what a probe leaves may have them."""

import functools
import json
import os
from pathlib import Path

from jobs import secrets

REQUEST = "MATRIX_PROBE_REQUEST"
"""Tells the processes of a cell where its request is, whose arguments may hold secrets."""

LONGEST = 4000
"""Characters."""

LONGEST_SECRET = 16_384
"""What begins before a text is cut must be masked as a whole."""


def mask_arguments_of(request_file: Path) -> None:
    """From now on, in this process and in those that it starts."""
    os.environ[REQUEST] = str(request_file)


def mask() -> secrets.Redactor:
    """Of the environment, and of what the engine was started with."""
    return _mask(os.environ.get(REQUEST))


def plain(text: str) -> str:
    """Without secrets, not too long, and such that every encoding can carry it."""
    shown = mask().text(text[: LONGEST + LONGEST_SECRET])[:LONGEST]
    return shown.encode("utf-8", "backslashreplace").decode()


def of(error: BaseException) -> str:
    try:
        return str(error)
    # An exception of somebody else's: its own text may fail in any way.
    except BaseException as failed:  # noqa: BLE001
        return f"(its message can't be read: {type(failed).__name__})"


@functools.cache
def _mask(request_file: str | None) -> secrets.Redactor:
    own = secrets.of_this_process()
    if request_file is None:
        return own
    try:
        asked = json.loads(Path(request_file).read_text())
        given = secrets.redactor(
            {"arguments": asked["engine_args"]}, own.names, ours=[asked["cell_id"]]
        )
    # The engine runs code of others, which may do anything to it.
    except (OSError, ValueError, LookupError, TypeError):
        return own
    return own | given
