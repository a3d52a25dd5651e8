"""A build made ready on this node within a deadline, and what is said meanwhile."""

import dataclasses
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jobs import processes
from jobs.contract.builds import BuildSpec
from jobs.contract.terms import Phase, to_json
from jobs.node import caches, shipped_files
from jobs.node.builds import store
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError
from jobs.node.builds.provision import naming, provision
from jobs.node.shipped_files import Original

CLEAR_UP_S = 60.0
POLL_S = 1.0

Step = dict[str, str]
Fetch = Callable[[str], Iterable[bytes] | None]
"""The content that was sent with the order, by its SHA-256; None: it was not."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a node is asked to make."""

    spec: BuildSpec
    cache: str
    deadline_s: float
    originals: Sequence[Original] = ()
    """The files of the build that its user's machine has."""

    known_mib: int = 0
    """The size of the build on another node, if one has it."""


def steps(order: Order, fetch: Fetch) -> Iterator[str]:
    """
    Yields JSON objects: any number of `say`, then one of `build` (a ProvisionedBuild as
    JSON), `lacks` (SHA-256 of originals, to be sent along the next time), `mistake` (the
    user's) and `trouble` (the node's).
    """
    until = time.monotonic() + order.deadline_s
    work = Work(order, fetch)
    work.start()
    step: Step = {"say": f"{order.spec.name}: starting"}
    while "say" in step:
        try:
            step = work.said.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            work.end()
            step = {"trouble": _timed_out(order, step["say"])}
        yield json.dumps(step)


class Work(threading.Thread):
    def __init__(self, order: Order, fetch: Fetch) -> None:
        super().__init__(daemon=True)
        self.said: queue.SimpleQueue[Step] = queue.SimpleQueue()
        self._order = order
        self._fetch = fetch
        self._is_over = False

    def run(self) -> None:
        try:
            self.said.put(self._made())
        except BuildError as error:
            whose = "mistake" if isinstance(error, BuildSpecError) else "trouble"
            self.said.put({whose: error.message})
        # Whatever it is, the orchestrator waits for an end.
        except BaseException as error:  # noqa: BLE001
            trouble = f"{self._order.spec.name}: {type(error).__name__}: {error}"
            self.said.put({"trouble": trouble})

    def end(self) -> None:
        """What it runs is killed, upon which it clears up; the next word it says is its last."""
        self._is_over = True
        until = time.monotonic() + CLEAR_UP_S
        below = processes.Tree(keeper=processes.identify(os.getpid()))
        while self.is_alive() and processes.alive(below) and time.monotonic() < until:
            processes.end_all(below, processes.AT_ONCE)
            self.join(POLL_S)

    def _made(self) -> Step:
        order = self._order
        cache = caches.folder(order.cache).resolve()
        with naming(order.spec.name, cache):
            caches.secure(cache)
            paths = {each.key: self._path(each, cache) for each in order.originals}
        if lacking := [each.sha256 for each in order.originals if paths[each.key] is None]:
            return {"lacks": " ".join(lacking)}
        own: dict[str, Any] = {key: str(path) for key, path in paths.items()}
        spec = dataclasses.replace(order.spec, **own)
        return {"build": to_json(provision(spec, cache, self._say, known_mib=order.known_mib))}

    def _path(self, original: Original, cache: Path) -> Path | None:
        def say(line: str) -> None:
            self._say(f"{self._order.spec.name}: {line}")

        if path := shipped_files.found(original, cache, say):
            return path
        content = self._fetch(original.sha256)
        return None if content is None else shipped_files.kept(original, content, cache, say)

    def _say(self, line: str) -> None:
        if self._is_over:
            raise BuildNodeError("it was given up")
        self.said.put({"say": line})


def _timed_out(order: Order, said: str) -> str:
    name, deadline_s = order.spec.name, order.deadline_s
    if store.WAITING in said:
        return (
            f"build {name}: after {deadline_s:g} s it was still {said.removeprefix(f'{name}: ')}; "
            f"run the same command again when that is done, or allow more: "
            f"deadlines.provision=SECONDS"
        )
    return (
        f"build {name}: timed out in phase {Phase.PROVISION} after {deadline_s:g} s; "
        f'the last it said was "{said}". To allow more: deadlines.provision=SECONDS'
    )
