"""
Ports for one cell, apart from those of all other cells of this machine.

A free port that a process finds is free until somebody else finds it too. So each cell
has a range to search, and holds it by a socket of that name: the kernel keeps such names
by network, as it keeps ports, and frees them with their holder.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.node.errors import NodeError

FIRST = 20_000
RANGE = 64
"""Ports of one cell: an engine needs a few, and more where it is data-parallel."""

RANGES = 190
"""They end below the ports that Linux gives to those who ask for any."""

MEETING = RANGE - 1
"""Where in its range the ranks of a cell meet that come from several nodes."""


@contextmanager
def held() -> Iterator[int]:
    """The first port of a range that is nobody else's."""
    for first in range(FIRST, FIRST + RANGES * RANGE, RANGE):
        with socket.socket(socket.AF_UNIX) as holder:
            try:
                holder.bind(f"\0vllm-matrix-ports-{first}")
            except OSError:
                continue
            yield first
            return
    raise NodeError(f"{RANGES} cells run on this machine already, and no ports are left for more")
