"""Builds made ready on the nodes, and what is said while that goes on."""

import json
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.node import provisioning, ray_tasks
from jobs.node.builds.errors import BuildError, BuildSpecError
from jobs.node.provisioning import Order
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.running.cluster import (
    BuildKey,
    BuildNews,
    BuildReady,
    Builds,
    BuildTrouble,
    Node,
    Whose,
    read_build,
)
from orchestrator.running.on_ray import nodes
from orchestrator.running.on_ray.sending import Sent
from orchestrator.running.on_ray.wording import one_line

POLL_S = 0.2
SILENT_S = 2 * provisioning.CLEAR_UP_S
"""For a worker to start, and to clear up after its deadline."""


@dataclass(kw_only=True, slots=True)
class _Site:
    """A node, and what is to be made there: one after the other, since they share its disk."""

    node: Node
    todo: deque[Order] = field(default_factory=deque)
    steps: Any = None
    """Of the first order, as Ray hands them on; None: it is not begun."""

    until: float = 0.0

    @property
    def name(self) -> str:
        return self.todo[0].spec.name

    @property
    def key(self) -> BuildKey:
        return _key(self.todo[0])

    @property
    def task(self) -> str:
        return f"provision {self.name} on {self.node.id[:12]}"


class Provisioning:
    """On all nodes at once. It waits for none of them: what happens is told by `news`."""

    def __init__(self, cache: str) -> None:
        self._cache = cache
        self._sites: dict[str, _Site] = {}
        self._sent = Sent()
        self._mib: dict[BuildKey, int] = {}
        self._make: Any = ray.remote(max_retries=0, num_cpus=0)(ray_tasks.provision_steps)

    def pending(self) -> set[BuildKey]:
        """Builds that have not come to their end on every node."""
        return {_key(order) for site in self._sites.values() for order in site.todo}

    def begin(self, node: Node, specs: Sequence[BuildSpec], *, deadline_s: float) -> None:
        """Each of *specs* has that long, once its turn has come."""
        site = self._sites.setdefault(node.id, _Site(node=node))
        orders = (Order(spec=spec, cache=self._cache, deadline_s=deadline_s) for spec in specs)
        site.todo.extend(orders)

    def news(self) -> Iterator[BuildNews]:
        """What has happened since the last time: lines to say, and ends."""
        while True:
            for site in self._sites.values():
                yield from self._begun(site)
            running = {site.steps: site for site in self._sites.values() if site.steps}
            ready, _ = ray.wait([*running], num_returns=len(running), timeout=0)
            if not ready:
                break
            for steps in ready:
                yield from self._taken(running[steps])
        for site in self._sites.values():
            if site.steps and time.monotonic() > site.until:
                nodes.kill_worker_of(site.task)
                yield self._trouble(
                    site,
                    f"build {site.name}: its Ray worker is silent, long past its deadline, and "
                    f"was killed",
                )

    def _begun(self, site: _Site) -> Iterator[BuildNews]:
        """A build whose own files are not what they should be ends before it begins."""
        while site.todo and site.steps is None:
            try:
                originals = self._sent.originals(site.todo[0].spec)
            except BuildError as error:
                whose: Whose = "user" if isinstance(error, BuildSpecError) else "node"
                yield self._trouble(site, f"build {site.name}: {error.message}", whose)
            else:
                mib = self._mib.get(site.key, 0)
                site.todo[0] = replace(site.todo[0], originals=originals, known_mib=mib)
                self._start(site, {})

    def _start(self, site: _Site, contents: Mapping[str, Sequence[Any]]) -> None:
        # Hard: a task for a node that is gone fails at once, rather than wait for ever.
        there = NodeAffinitySchedulingStrategy(site.node.id, soft=False)
        task = self._make.options(name=site.task, scheduling_strategy=there)
        site.steps = task.remote(site.todo[0], contents)
        site.until = time.monotonic() + site.todo[0].deadline_s + SILENT_S

    def _taken(self, site: _Site) -> Iterator[BuildNews]:
        """The next step of a site that has one."""
        try:
            yield from self._understood(site, json.loads(ray.get(next(site.steps))))
        except ray.exceptions.RayError as error:
            yield self._trouble(site, f"build {site.name}: provisioning failed: {one_line(error)}")
        except ValueError as error:
            why = f"the node's answer is not valid: {one_line(error)}"
            yield self._trouble(site, f"build {site.name}: {why}")

    def _understood(self, site: _Site, step: dict[str, str]) -> Iterator[BuildNews]:
        match step:
            case {"say": line}:
                yield self._line(site, line)
            case {"lacks": digests}:
                yield from self._supplied(site, digests.split())
            case {"build": text}:
                yield self._ready(site, read_build(text))
            case {"mistake": message}:
                yield self._trouble(site, message, "user")
            case {"trouble": message}:
                yield self._trouble(site, message)
            case _:
                raise ValueError(f"{[*step]} is no step")

    def _supplied(self, site: _Site, lacking: Sequence[str]) -> Iterator[BuildNews]:
        """Asked once more, with what was missing."""
        originals = [each for each in site.todo[0].originals if each.sha256 in lacking]
        for each in originals:
            yield self._line(site, f"{site.name}: sending {each.path} ({each.mib:.1f} MiB)")
        try:
            self._start(site, {each.sha256: self._sent.references(each) for each in originals})
        except OSError as error:
            why = f"{error.filename}: {error.strerror}"
            yield self._trouble(site, f"build {site.name}: {why}")

    def _ready(self, site: _Site, build: ProvisionedBuild) -> BuildReady:
        self._mib[site.key] = build.mib
        ready = BuildReady(node_id=site.node.id, key=site.key, build=build)
        self._end(site)
        return ready

    def _trouble(self, site: _Site, message: str, whose: Whose = "node") -> BuildTrouble:
        trouble = BuildTrouble(node_id=site.node.id, key=site.key, message=message, whose=whose)
        self._end(site)
        return trouble

    def _end(self, site: _Site) -> None:
        site.todo.popleft()
        site.steps = None

    def _line(self, site: _Site, line: str) -> str:
        return f"{site.node.name}: {line}" if len(self._sites) > 1 else line


def first(
    work: Provisioning,
    there: Mapping[str, Node],
    say: Callable[[str], None],
    check: Callable[[], None],
) -> Builds:
    """Wait until every build has a node, and go on in the background. Raises if one gets none."""
    ends: list[BuildReady | BuildTrouble] = []
    while work.pending() - _at_home(ends):
        check()
        for news in work.news():
            if isinstance(news, str):
                say(news)
            else:
                ends.append(news)
        time.sleep(POLL_S)
    troubles = [end for end in ends if isinstance(end, BuildTrouble)]
    if missing := [trouble for trouble in troubles if trouble.key not in _at_home(ends)]:
        raise _error(missing)
    for trouble in troubles:
        say(trouble.sentence(there[trouble.node_id].name))
    return _by_node(ends)


def _key(order: Order) -> BuildKey:
    return order.spec.engine_mode, order.spec.name


def _at_home(ends: Sequence[BuildReady | BuildTrouble]) -> set[BuildKey]:
    return {end.key for end in ends if isinstance(end, BuildReady)}


def _error(troubles: Sequence[BuildTrouble]) -> ConfigError | ClusterError:
    mistakes = [trouble.message for trouble in troubles if trouble.whose == "user"]
    if mistakes:
        return ConfigError("a build can't be made as it is described:", dict.fromkeys(mistakes))
    return ClusterError("\n".join(dict.fromkeys(trouble.message for trouble in troubles)))


def _by_node(ends: Sequence[BuildReady | BuildTrouble]) -> Builds:
    ready: dict[str, dict[BuildKey, ProvisionedBuild]] = defaultdict(dict)
    troubles: dict[str, dict[BuildKey, str]] = defaultdict(dict)
    for end in ends:
        match end:
            case BuildReady():
                ready[end.node_id][end.key] = end.build
            case BuildTrouble():
                troubles[end.node_id][end.key] = end.message
    return Builds(ready=dict(ready), troubles=dict(troubles))
