"""A Ray of this run's own, which nobody but this machine can reach."""

import logging
import os
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from ray._private import ray_constants

from jobs.node import inventory
from orchestrator.asked.config import ClusterChoice

REACH_S = 5.0


def start(choice: ClusterChoice, say: Callable[[str], None]) -> Path:
    """
    Where it keeps its own logs and sockets.

    Ray gives its processes half a minute, which on a machine with much to do is too short.
    """
    _keep_to_loopback()
    kept = psutil.Process().children(recursive=True)
    try:
        return _start_once(choice)
    except Exception as error:  # noqa: BLE001  Ray raises just that
        _end_children(kept)
        ray.shutdown()
        why = textwrap.shorten(str(error), 300)
        say(f"what is left of Ray was ended, and it is started once more: {why}")
        return _start_once(choice)


def _keep_to_loopback() -> None:
    """Ray takes an address of the loopback for a mistake, save where it can't be a cluster."""
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False


def _start_once(choice: ClusterChoice) -> Path:
    here = inventory.look()
    ours: Any = ray.init(
        address="local",
        # How many of them the memory carries, Ray counts: each cell says what it needs.
        num_cpus=choice.cells_at_once or here.cpus,
        num_gpus=len(here.devices),
        labels=here.labels,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _node_ip_address="127.0.0.1",
    )
    return Path(ours.address_info["session_dir"])


def _end_children(kept: Sequence[psutil.Process]) -> None:
    """Of this process, and theirs, all but *kept*."""
    left = {*psutil.Process().children(recursive=True)} - {*kept}
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=REACH_S)
