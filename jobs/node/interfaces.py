"""The network interface by which other nodes reach this one."""

import fcntl
import socket
import struct
from contextlib import suppress

SIOCGIFADDR = 0x8915
NAME_CHARS = 15


def holding(address: str) -> str | None:
    """The name of the one that has it; None if none does, or for an address of IPv6."""
    for _, name in socket.if_nameindex():
        if _address_of(name) == address:
            return name
    return None


def _address_of(name: str) -> str | None:
    asked = struct.pack("256s", name[:NAME_CHARS].encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket, suppress(OSError):
        return socket.inet_ntoa(fcntl.ioctl(any_socket, SIOCGIFADDR, asked)[20:24])
    return None
