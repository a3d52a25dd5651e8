"""Whether a cluster asks those who come to it for a token, and who can come to it at all."""

import ipaddress
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import urlsplit

import psutil

REACH_S = 5.0
TOKENS = "RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"
"""Where Ray looks for its token."""

Door = Literal["on", "off", "loopback", "unknown"]
"""Whether it asks for one; `loopback`: it does not, and nobody but this machine comes to it."""

_OF_RAY = ("/ray/core/", "/ray/dashboard/")
"""In the command lines of its servers."""


def asked_without_token(url: str) -> Door:
    """By a question to the dashboard that does no harm."""
    # None: those of the environment.
    proxies: dict[str, str] | None = {} if is_loopback(urlsplit(url).hostname or "") else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
    try:
        opener.open(f"{url}/api/version", timeout=REACH_S).close()
    except urllib.error.HTTPError as refused:
        return "on" if refused.code in {401, 403} else "unknown"
    except (OSError, ValueError):
        return "unknown"
    return "off"


def narrowed(door: Door, ports: Collection[int]) -> Door:
    """An open door is none where the servers behind *ports* listen to this machine alone."""
    return "loopback" if door == "off" and _lead_nowhere_else(ports) else door


def _lead_nowhere_else(ports: Collection[int]) -> bool:
    """Of a tunnel that ends here nobody knows who comes to its other end, so Ray has to listen."""
    there: dict[int, bool] = {}
    for host, port, pid in _listening():
        if port in ports:
            there[port] = there.get(port, True) and is_loopback(host) and _is_of_ray(pid)
    return bool(ports) and all(there.get(port, False) for port in ports)


def _listening() -> Iterator[tuple[str, int, int | None]]:
    for each in psutil.net_connections("tcp"):
        if each.status == psutil.CONN_LISTEN:
            place: Any = each.laddr
            yield place.ip, place.port, each.pid


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host.removeprefix("::ffff:")).is_loopback
    return False


def _is_of_ray(pid: int | None) -> bool:
    """None where it is another user's."""
    with suppress(psutil.Error):
        if pid is not None:
            return any(part in word for word in psutil.Process(pid).cmdline() for part in _OF_RAY)
    return False
