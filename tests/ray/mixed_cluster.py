"""
A real Ray cluster on this machine: raylets with pretended devices, each a node of its own.

Whatever a node starts carries the cluster's token and the node's name in its environment, so
that what is left of it can be found. Nothing listens on anything but the loopback.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Self

from tests.ray import marked
from tests.ray.driver import TOKEN
from tests.ray.node_kinds import FIVE, NodeKind
from tests.ray.raylet import READY

ROOT = Path(__file__).parents[2]
NODE = "MATRIX_TEST_NODE"
OBJECTS_MIB = 80
"""Ray wants 75 at least, and we have no objects worth a word."""

BIN = Path(sys.executable).parent
HOST = "127.0.0.1"

ON_THE_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Or else Ray replaces 127.0.0.1 by an address that others reach: in nodes, and in drivers."""

_RAYLET = (sys.executable, "-m", "tests.ray.raylet")

TRIES = 3
"""Ray gives a node half a minute to start, and its agents 15 s: too short where others have much to do."""

POLL_S = 0.1


class MixedCluster:
    """In a `with`: the nodes run from its beginning, and nothing of them is left after its end."""

    def __init__(
        self,
        nodes: Sequence[NodeKind] = FIVE,
        *,
        environment: Mapping[str, str] | None = None,
        takes_jobs: bool = False,
        keeps_its_state: bool = False,
    ) -> None:
        """
        The first node is the head.

        With *takes_jobs* it has a dashboard, which needs `ray[default]`, and is not there
        before jobs go through; with *keeps_its_state* it can be started again.
        """
        self.nodes = [*nodes]
        self.token = uuid.uuid4().hex
        # Ray's sockets lie in it, whose paths have to be short.
        self._folder = Path(tempfile.mkdtemp(prefix="matrix-"))
        self._ports = _free_ports()
        self._takes_jobs = takes_jobs
        self._started: list[subprocess.Popen[bytes]] = []
        self._environment = {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            **ON_THE_LOOPBACK,
            **(environment or {}),
        }
        if keeps_its_state:
            self._environment["RAY_gcs_storage"] = "rocksdb"
            self._environment["RAY_gcs_storage_path"] = str(self._folder / "gcs")

    @property
    def address(self) -> str:
        return f"{HOST}:{self._ports['gcs']}"

    @property
    def jobs_url(self) -> str:
        return f"http://{HOST}:{self._ports['dashboard']}"

    def environment(self) -> dict[str, str]:
        """Of whoever talks to the cluster; what a driver leaves counts as left of the cluster."""
        return {**os.environ, **self._environment, TOKEN: self.token}

    def __enter__(self) -> Self:
        head, *others = self.nodes
        try:
            self._bring_up(head, is_new=True)
            # More at once than cores, and Ray gives up on those that are slow.
            with ThreadPoolExecutor(max_workers=os.cpu_count()) as starting:
                [*starting.map(self._bring_up, others)]
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def add(self, kind: NodeKind) -> None:
        """One more node, or again one that was killed."""
        if kind not in self.nodes:
            self.nodes.append(kind)
        self._bring_up(kind)

    def processes(self, name: str, part: str = "") -> list[int]:
        """Of that node: Ray's, the engines below, and those that lost their parents."""
        found = marked.carrying(f"{TOKEN}={self.token}", f"{NODE}={name}")
        return [pid for pid in found if part in marked.command(pid)]

    def kill(self, name: str) -> None:
        """Its raylet, at once; what runs on the node has to notice."""
        marked.send(signal.SIGKILL, *self.processes(name, "raylet/raylet"))

    def stop(self, name: str) -> None:
        """It answers nobody, and what runs on it runs on: to the others, the network is broken."""
        marked.send(signal.SIGSTOP, *self.processes(name, "raylet/raylet"))

    def go_on(self, name: str) -> None:
        marked.send(signal.SIGCONT, *self.processes(name, "raylet/raylet"))

    def kill_head(self) -> None:
        """All of Ray on the head; drivers that connected to it are not of the cluster."""
        marked.send(signal.SIGKILL, *self.processes(self.nodes[0].name))

    def restart_head(self) -> None:
        self._bring_up(self.nodes[0])

    def left(self, patience_s: float = 1.0) -> list[str]:
        """Command lines of what is still there after the end."""
        end = time.monotonic() + patience_s
        while self._all() and time.monotonic() < end:
            time.sleep(POLL_S)
        return [marked.command(pid) for pid in self._all()]

    def end(self) -> None:
        while processes := self._all():
            marked.send(signal.SIGKILL, *processes)
            time.sleep(POLL_S)
        for process in self._started:
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _all(self) -> list[int]:
        """Ray's agents write their title over their environment, and outlive their raylet."""
        return [*marked.carrying(f"{TOKEN}={self.token}"), *marked.holding(self._folder)]

    def _bring_up(self, kind: NodeKind, *, is_new: bool = False) -> None:
        log = self._folder / f"{kind.name}.log"
        for _ in range(TRIES):
            with log.open("wb") as output:
                process = self._start(kind, output)
            if _is_ready(process, log):
                return
            if is_new:
                self._ports = _free_ports()
        raise AssertionError(f"{kind.name} does not start:\n{log.read_text(errors='replace')}")

    def _start(self, kind: NodeKind, output: BinaryIO) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*kind.prefix, *_RAYLET, json.dumps(self._parameters(kind))],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**self.environment(), **kind.environment, NODE: kind.name},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def _parameters(self, kind: NodeKind) -> dict[str, Any]:
        """In the words of Ray's own parameters of a node."""
        ports = self._ports
        head = {
            "gcs_server_port": ports["gcs"],
            "dashboard_host": HOST,
            "dashboard_port": ports["dashboard"],
            "include_dashboard": self._takes_jobs,
            "no_monitor": True,
        }
        return {
            **(head if kind is self.nodes[0] else {"gcs_address": self.address}),
            "node_ip_address": HOST,
            "node_name": kind.name,
            # Of its own, as on a machine of its own: nodes clear up what they unpacked for jobs.
            "temp_dir": str(self._folder / kind.name),
            # Or else the heads of a machine want the same one, and only the first takes jobs.
            "dashboard_agent_listen_port": 0,
            "num_cpus": kind.cpus,
            "num_gpus": kind.gpus,
            "memory": int(kind.memory_gib * 2**30),
            "object_store_memory": OBJECTS_MIB << 20,
            "labels": dict(kind.labels),
            "include_log_monitor": False,
            "min_worker_port": 0,
            "max_worker_port": 0,
        }


def _is_ready(process: subprocess.Popen[bytes], log: Path) -> bool:
    """False where it ended instead."""
    while READY not in log.read_text(errors="replace"):
        if process.poll() is not None:
            return False
        time.sleep(POLL_S)
    return True


def _free_ports() -> dict[str, int]:
    """Of what others have to find."""
    with socket.socket() as gcs, socket.socket() as dashboard:
        holders = {"gcs": gcs, "dashboard": dashboard}
        for holder in holders.values():
            holder.bind((HOST, 0))
        return {name: int(holder.getsockname()[1]) for name, holder in holders.items()}
