"""Commands that end with the thread that runs them, however that ends: on nodes, nothing stays."""

import os
import sys
from collections.abc import Sequence

# Kept here: what is to be the Python of builds may be another by then.
PYTHON = sys.executable

PROGRAM = """\
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
parent, *command = sys.argv[1:]
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(parent):
    os.execv(command[0], command)
"""


def command(words: Sequence[str]) -> list[str]:
    """A command line that becomes *words*, which begin with a full path."""
    return [PYTHON, "-I", "-S", "-c", PROGRAM, str(os.getpid()), *words]
