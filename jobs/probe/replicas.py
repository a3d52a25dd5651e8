"""
The other engines of data parallelism, where there is no server to start them.

vLLM wants a process for each then, and tells them apart by their environment. They are forks
of the cell, made before its own engine: engines wait for each other when they start, and
again at every step.
"""

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from jobs.probe import error_log

SIZE = "data_parallel_size"

GENERATE = "generate"

RANK_VARIABLES = ("VLLM_DP_RANK", "VLLM_DP_RANK_LOCAL")


class ReplicaEnded(Exception):  # noqa: N818 - what became of it, no error of this process
    """The cause is in the log of errors."""


@dataclass(frozen=True, slots=True)
class Replicas:
    connections: tuple[Connection, ...]
    """To each; closed ones end it."""

    def readings(self) -> list[str]:
        """Of all their ranks, once they are ready."""
        return [text for number in range(len(self.connections)) for text in self._heard(number)]

    def generate(self) -> None:
        """Without waiting for it, since they wait for us."""
        for connection in self.connections:
            connection.send(GENERATE)

    def end(self) -> None:
        for connection in self.connections:
            connection.close()

    def _heard(self, number: int) -> Any:
        try:
            return self.connections[number].recv()
        except EOFError as error:
            raise ReplicaEnded(f"data-parallel rank {number + 1} ended") from error


def fork(size: int, run: Callable[[Connection], None]) -> Replicas:
    """
    All but the first, which this process becomes. Each of them does *run*, and nothing else.
    """
    if size == 1:
        return Replicas(())
    from vllm.utils.network_utils import get_open_port

    os.environ["VLLM_DP_SIZE"] = str(size)
    os.environ["VLLM_DP_MASTER_IP"] = "127.0.0.1"
    os.environ["VLLM_DP_MASTER_PORT"] = str(get_open_port())
    replicas = tuple(_forked(rank, run) for rank in range(1, size))
    _become(0)
    return Replicas(replicas)


def _forked(rank: int, run: Callable[[Connection], None]) -> Connection:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def serve() -> None:
        ours.close()
        _become(rank)
        _serve(rank, lambda: run(theirs))

    context.Process(target=serve, name=f"DP{rank}").start()
    theirs.close()
    return ours


def _become(rank: int) -> None:
    for variable in RANK_VARIABLES:
        os.environ[variable] = str(rank)


def _serve(rank: int, run: Callable[[], None]) -> None:
    code = 0
    # Whatever it is, the first engine's process tells of it.
    try:
        run()
    except BaseException as error:  # noqa: BLE001
        traceback.print_exc()
        error_log.leave(error, process=f"DP{rank}")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # As the cell does: finalizers of an engine could only hang here.
    os._exit(code)
