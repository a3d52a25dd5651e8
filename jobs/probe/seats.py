"""
This node's part of an engine that spans several.

The engine is where node rank 0 is: it schedules, and asks all ranks. The other nodes have ranks
and nothing else, as `vllm serve --headless` does it.
"""

import os
from typing import Any, NoReturn

from jobs.contract.asked import Seat

NODE_VARIABLE = "MATRIX_NODE"
"""Tells every rank where it is."""


class RankEnded(Exception):  # noqa: N818 - what became of it, no error of this process
    """The cause is in the log of errors, or in how the rank's process ended."""


def taken(seat: Seat | None) -> dict[str, Any]:
    """The arguments of an engine that has it."""
    if seat is None:
        return {}
    os.environ[NODE_VARIABLE] = seat.node
    return {"node_rank": seat.number, "master_addr": seat.leader, "master_port": seat.port}


def node() -> str | None:
    return os.environ.get(NODE_VARIABLE)


def follow(arguments: dict[str, Any]) -> NoReturn:
    """Have the ranks of a node that does not lead, for as long as nobody ends this process."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.executor.multiproc_executor import MultiprocExecutor

    # As vllm.LLM asks for it, on which some defaults depend: all ranks must have the same.
    config = EngineArgs(**arguments).create_engine_config(UsageContext.LLM_CLASS, headless=True)
    executor = MultiprocExecutor(config, monitor_workers=False)
    executor.start_worker_monitor(inline=True)
    raise RankEnded("a rank of this node ended")
