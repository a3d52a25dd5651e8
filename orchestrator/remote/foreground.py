"""The keyboard of a run that its supervisor keeps in the background of the terminal."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def taken() -> Iterator[None]:
    """Ctrl-C and answers come here meanwhile, and no longer to the supervisor."""
    ours, theirs = os.getpgrp(), os.getpgid(os.getppid())
    if ours == theirs or _in_front() != theirs:
        yield
        return
    # The supervisor would not stop along with this process, and so no shell would wake it.
    kept = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    os.tcsetpgrp(sys.stdin.fileno(), ours)
    try:
        yield
    finally:
        os.tcsetpgrp(sys.stdin.fileno(), theirs)
        signal.signal(signal.SIGTSTP, kept)


def can_ask() -> bool:
    """Whoever reads in the background is stopped."""
    return _in_front() == os.getpgrp()


def _in_front() -> int | None:
    """The process group that the terminal belongs to, if this process has one to read from."""
    return os.tcgetpgrp(sys.stdin.fileno()) if sys.stdin.isatty() else None
