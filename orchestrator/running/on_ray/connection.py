"""The way to a cluster that runs: an address that can be one, and a token that it takes."""

import logging
import re
import socket
from collections.abc import Mapping
from typing import Any

import ray
import ray.exceptions
from ray._private.authentication.authentication_utils import is_token_auth_enabled
from ray._private.services import find_node_ids

from orchestrator.errors import ClusterError, ConfigError
from orchestrator.running.on_ray import door
from orchestrator.running.on_ray.door import TOKENS, Door

AUTO = "auto"
"""Ray's own word for the cluster of the machine we are on."""

ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
LARGEST_PORT = 65535
REACH_S = 5.0
_NO_NODE = "No node info found"
"""What Ray says where this machine has nodes, and none of that cluster."""


def connect(address: str) -> Door:
    """Raises ConfigError for what can be no address, ClusterError where no cluster lets us in."""
    if address != AUTO:
        _check_reachable(address)
        # Or else Ray would look for a minute.
        if not find_node_ids():  # type: ignore[no-untyped-call]
            raise ClusterError(_no_node(address))
    try:
        ours: Any = ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except ray.exceptions.AuthenticationError as error:
        raise ClusterError(
            f"Ray is to authenticate itself to {address} and has no token: put the cluster's into "
            f"{TOKENS}; `ray get-auth-token` tells it on the head"
        ) from error
    except ConnectionError as error:
        is_of_another = _NO_NODE in str(error.__cause__)
        raise ClusterError(_no_node(address) if is_of_another else _shut_out(address)) from error
    return _door(ours.address_info)


def _check_reachable(address: str) -> None:
    """Ray would try for minutes."""
    found = ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > LARGEST_PORT:
        raise ConfigError(
            f'"{address}" can be no address of a Ray cluster: it is HOST:PORT as `ray start '
            f"--head` printed it, such as 10.0.0.1:6379, or {AUTO} on a machine of the cluster"
        )
    try:
        socket.create_connection(
            (found["host"].strip("[]"), int(found["port"])), timeout=REACH_S
        ).close()
    except OSError as error:
        raise ClusterError(
            f"nothing answers at {address} ({error.strerror or error}): is it what `ray start "
            f"--head` printed, does the head run, and is the port open from here?"
        ) from error


def _shut_out(address: str) -> str:
    """Ray itself tells no more than that it failed."""
    if address == AUTO:
        return "no Ray cluster runs on this machine: start one, or name another's HOST:PORT"
    elsewhere = "Or this is another port than the one that `ray start --head` printed."
    if is_token_auth_enabled():
        return (
            f"{address} answers and does not let us in: the token here ({TOKENS}) is not the "
            f"cluster's, which `ray get-auth-token` tells on the head. {elsewhere}"
        )
    return (
        f"{address} answers and does not let us in: it wants a token, so set RAY_AUTH_MODE=token "
        f"and put the cluster's into {TOKENS}. {elsewhere}"
    )


def _no_node(address: str) -> str:
    return (
        f"{address} answers, and this machine is no node of that cluster, as Ray wants it: say the "
        "same on one of its nodes, or send the run there from here with `vllm-matrix submit "
        "--address URL`, where URL is that of its dashboard"
    )


def _door(told: Mapping[str, str]) -> Door:
    dashboard = told.get("webui_url") or ""
    ports = {int(each.rpartition(":")[2]) for each in (told["gcs_address"], dashboard) if each}
    if not is_token_auth_enabled():
        # We were let in with none.
        return door.narrowed("off", ports)
    asked = door.asked_without_token(f"http://{dashboard}") if dashboard else "unknown"
    return door.narrowed(asked, ports)
