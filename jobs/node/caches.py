"""The folder in which this node keeps what it reuses, and who else may write there."""

import os
import pwd
import stat
from pathlib import Path

from jobs.node.builds.errors import BuildNodeError

USUAL = "~/.cache/vllm-matrix"
"""As conf/ has it."""

VARIABLE = "VLLM_MATRIX_CACHE"
"""Names the usual one of this node, whose disks are not those of the next."""


def folder(asked: str | Path) -> Path:
    usual = os.environ.get(VARIABLE) if str(asked) == USUAL else None
    return Path(usual or asked).expanduser().absolute()


def secure(cache: Path) -> None:
    """
    Make it, for this user alone, if it is not there.

    Engines run code that lies in it, so raises BuildNodeError if it is another user's or
    anyone may write to it. Root, and a group that may write, are trusted.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = cache.stat()
    if found.st_uid not in {os.geteuid(), 0}:
        raise BuildNodeError(
            f"the cache {cache} belongs to {_user(found.st_uid)}, who could put there what engines "
            f"of {_user(os.geteuid())} would run: set `cache` to a folder of your own"
        )
    if found.st_mode & stat.S_IWOTH:
        raise BuildNodeError(
            f"anyone may write to the cache {cache}, and so put there what engines would run: "
            f"`chmod o-w` it, or set `cache` to a folder inside, such as {cache / 'vllm-matrix'}"
        )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
