"""
What ties the parts of a cell together that several nodes run.

The part that leads listens. Each other connects before it does anything else, shows the secret
that all were given, and says when it is ready to begin; once all are, the leading part says at
which port of its node their ranks find each other. Then nothing is said until the end: DONE if
the cell did what it was asked, and else a connection closes, which tells that a part has ended.
"""

import select
import socket
import struct
import time
from contextlib import suppress

from jobs.contract.asked import Part
from jobs.node.errors import NodeError, PartedError

READY = b"r"
DONE = b"d"
PORT = struct.Struct("!H")

SLICE_S = 0.5
"""Of waiting: Ray cancels a task with a note to Python, which wakes no system call."""

REACH_S = 30.0
GRACE_S = 10.0
"""For a part that lost another to end by itself: it may be the one that knows why."""

SILENT_S = 5
PROBES = 3
"""A node that lost its power closes nothing: so often is it asked, after so long, each time."""


class Tether:
    """By itself, that of a cell that one node has all of."""

    def __init__(self) -> None:
        self._others: list[socket.socket] = []
        self._parted = False

    def join(self) -> None:
        """Be known to the others. Raises PartedError, as all others of these do."""

    def meet(self, port: int, patience_s: float) -> int:
        """Wait until all are ready; returns the port of all, which is *port* if this one leads."""
        del patience_s
        return port

    @property
    def sources(self) -> tuple[int, ...]:
        """Descriptors that become readable when another part ends."""
        return () if self._parted else tuple(other.fileno() for other in self._others)

    def grace_s(self) -> float | None:
        """How long this part may stay now that another has ended; None if none has."""
        said = [_heard(other) for other in self._others]
        self._parted = any(word != b"" for word in said)
        if not self._parted:
            return None
        return 0.0 if DONE in said else GRACE_S

    def done(self) -> None:
        """The cell did what it was asked, so that no part is needed any more."""
        for other in self._others:
            with suppress(OSError):
                other.send(DONE)

    def close(self) -> None:
        for other in self._others:
            other.close()


class Leading(Tether):
    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part = part
        try:
            self._listener = _listener(part.address)
        except OSError as error:
            raise NodeError(f"can't listen at {part.address}: {error.strerror}") from error
        self._said: dict[socket.socket, bytes] = {}
        """What was heard from those who are not known to be ready."""

        self.port: int = self._listener.getsockname()[1]

    def meet(self, port: int, patience_s: float) -> int:
        until = time.monotonic() + patience_s
        while len(self._others) < self._part.of - 1:
            for source in _readable([self._listener, *self._said], until):
                if source is self._listener:
                    self._said[_kept_alive(source.accept()[0])] = b""
                else:
                    self._hear(source)
        for other in self._others:
            with suppress(OSError):  # it has ended, which is heard later
                other.sendall(PORT.pack(port))
        return port

    def _hear(self, source: socket.socket) -> None:
        """A bit more of what a part says, or a stranger."""
        secret = self._part.secret.encode()
        word = _received(source, len(secret + READY) - len(self._said[source]))
        said = self._said[source] = self._said[source] + word
        if said == secret + READY:
            self._others.append(source)
        elif word and (secret + READY).startswith(said):
            return
        else:
            source.close()
        del self._said[source]
        if said == secret:
            raise PartedError

    def close(self) -> None:
        for connection in (self._listener, *self._said):
            connection.close()
        super().close()


class Following(Tether):
    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part = part

    def join(self) -> None:
        place = self._part.leader, self._part.port
        try:
            leader = socket.create_connection(place, REACH_S)
            self._others.append(_kept_alive(leader))
            leader.sendall(self._part.secret.encode())
        except ConnectionError as error:
            raise PartedError from error
        except OSError as error:
            raise NodeError(
                f"{self._part.node} can't reach {place[0]}, port {place[1]}: {error}; nodes of one "
                "cell must reach each other at all ports"
            ) from error

    def meet(self, port: int, patience_s: float) -> int:
        del port
        [leader] = self._others
        with suppress(OSError):  # it has ended, which is heard below
            leader.sendall(READY)
        until = time.monotonic() + patience_s
        said = b""
        while len(said) < PORT.size:
            for source in _readable([leader], until):
                if not (word := _received(source, PORT.size - len(said))):
                    raise PartedError
                said += word
        return int(PORT.unpack(said)[0])


def _listener(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, 0), family=family)


def _kept_alive(connection: socket.socket) -> socket.socket:
    connection.settimeout(REACH_S)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, SILENT_S),
        (socket.TCP_KEEPINTVL, SILENT_S),
        (socket.TCP_KEEPCNT, PROBES),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


def _readable(sources: list[socket.socket], until: float) -> list[socket.socket]:
    if time.monotonic() > until:
        raise NodeError("the other nodes of the cell were not ready in time")
    return _polled(sources, SLICE_S)


def _polled(sources: list[socket.socket], seconds: float) -> list[socket.socket]:
    either = select.poll()
    for source in sources:
        either.register(source, select.POLLIN)
    ready = {descriptor for descriptor, _ in either.poll(seconds * 1000)}
    return [source for source in sources if source.fileno() in ready]


def _received(source: socket.socket, most: int) -> bytes:
    """Nothing at its end, whatever that was like."""
    with suppress(OSError):
        return source.recv(most)
    return b""


def _heard(other: socket.socket) -> bytes | None:
    """The word that waits to be read; b"" if none does, and None if none will come."""
    if not _polled([other], 0.0):
        return b""
    with suppress(OSError):
        return other.recv(1, socket.MSG_PEEK) or None
    return None


ALONE = Tether()
