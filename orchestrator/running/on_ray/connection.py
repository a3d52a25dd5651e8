"""The way to a cluster that runs: an address that can be one, and a token that it takes."""

import logging
import re
import socket
import urllib.error
import urllib.request
from typing import Any, Literal

import ray
import ray.exceptions
from ray._private.authentication.authentication_utils import is_token_auth_enabled

from orchestrator.errors import ClusterError, ConfigError

AUTO = "auto"
"""Ray's own word for the cluster of the machine we are on."""

ADDRESS = re.compile(r"(?:ray://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
LARGEST_PORT = 65535
REACH_S = 5.0
TOKENS = "RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"

Door = Literal["on", "off", "unknown"]
"""Whether a cluster authenticates those who talk to it."""


def connect(address: str) -> Door:
    """Raises ConfigError for what can be no address, ClusterError where no cluster lets us in."""
    if address != AUTO:
        _check_reachable(address)
    try:
        ours: Any = ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except ray.exceptions.AuthenticationError as error:
        raise ClusterError(
            f"Ray is to authenticate itself to {address} and has no token: put the cluster's into "
            f"{TOKENS}; `ray get-auth-token` tells it on the head"
        ) from error
    except ConnectionError as error:
        raise ClusterError(_shut_out(address)) from error
    return _door(ours.address_info.get("webui_url") or "")


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


def _door(dashboard: str) -> Door:
    if not is_token_auth_enabled():
        # We were let in with none.
        return "off"
    return asked_without_token(f"http://{dashboard}") if dashboard else "unknown"


def asked_without_token(url: str) -> Door:
    """By a question to the dashboard that does no harm."""
    try:
        urllib.request.urlopen(f"{url}/api/version", timeout=REACH_S).close()  # noqa: S310  http
    except urllib.error.HTTPError as refused:
        return "on" if refused.code in {401, 403} else "unknown"
    except (OSError, ValueError):
        return "unknown"
    return "off"
