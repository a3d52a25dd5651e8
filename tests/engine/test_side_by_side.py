"""Engines with several processes each, at the same time on one node."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from jobs.contract.asked import CellRequest, Deadlines
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.terms import Isolation
from jobs.node import ports
from jobs.shared_memory import FOLDER
from tests.engine.warm_parent import request
from tests.unit.standin import a_caller

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

TWO_WORKERS = {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"}
LOOK_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """Of the processes of a cell, from outside."""

    ports: frozenset[int]
    """The first of those that its workers were told to use."""

    shared: frozenset[str]
    """Files in shared memory that they had mapped."""


def test_two_engines_of_two_workers_each_have_nothing_in_common(
    vllm_python: Path, tmp_path: Path
) -> None:
    first, second = (_request(vllm_python, tmp_path, name) for name in ("first", "second"))

    looks = [*_while_they_run(first, second)]

    for cell in (first, second):
        report = _attempt(cell)["report"]
        assert (report["failure"], report["ready"]) == (None, True)
        assert report["engine"]["tensor_parallel"] == 2
        assert [(rank["rank"], rank["tensor"]) for rank in report["ranks"]] == [(0, 0), (1, 1)]
        backends = {group["backend"] for rank in report["ranks"] for group in rank["target"]}
        assert backends == {"CPU_ATTN"}
        assert len(report["tokens"]) == 8
    assert any(one.shared and other.shared for one, other in looks), "not at the same time"
    one, other = (_all_of(seen) for seen in zip(*looks, strict=True))
    assert one.shared.isdisjoint(other.shared)
    [port], [another] = one.ports, other.ports
    assert abs(port - another) >= ports.RANGE
    assert not [*_processes(first), *_processes(second)]
    left = {file.name for file in FOLDER.iterdir()}
    assert left.isdisjoint(one.shared | other.shared)


def _request(python: Path, folder: Path, name: str) -> CellRequest:
    build = ProvisionedBuild(
        name="build", digest="side by side", python=str(python), vllm_version="", torch_version=""
    )
    return CellRequest(
        probe=request({"model": "shipped:llama", **TWO_WORKERS}),
        build=build,
        env={},
        isolation=Isolation.WARM,
        deadlines=Deadlines(attempt_s=400, quiet_s=400),
        workdir=str(folder / name),
        cache=str(folder / "cache"),
    )


def _while_they_run(first: CellRequest, second: CellRequest) -> Iterator[tuple[Seen, Seen]]:
    for cell in (first, second):
        Path(cell.workdir).mkdir()
    with a_caller(first) as one, a_caller(second) as other:
        while one.poll() is None or other.poll() is None:
            yield _look(first), _look(second)
            time.sleep(LOOK_S)


def _look(cell: CellRequest) -> Seen:
    here = [*_processes(cell)]
    return Seen(
        ports=frozenset(port for process in here for port in _port(process)),
        shared=frozenset(name for process in here for name in _shared(process)),
    )


def _processes(cell: CellRequest) -> Iterator[psutil.Process]:
    """Whoever works in the cell's folder."""
    for process in psutil.process_iter():
        try:
            if process.cwd() == cell.workdir:
                yield process
        except psutil.Error:
            continue


def _port(process: psutil.Process) -> Iterator[int]:
    """Of a worker, which has an interpreter of its own: what a fork was told can't be seen."""
    try:
        environment = process.environ()
    except psutil.Error:
        return
    if "VLLM_PORT" in environment:
        yield int(environment["VLLM_PORT"])


def _shared(process: psutil.Process) -> list[str]:
    try:
        maps = Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:
        return []
    return re.findall(rf"{FOLDER}/(\S+)", maps)


def _all_of(looks: tuple[Seen, ...]) -> Seen:
    return Seen(
        ports=frozenset().union(*(look.ports for look in looks)),
        shared=frozenset().union(*(look.shared for look in looks)),
    )


def _attempt(cell: CellRequest) -> dict[str, Any]:
    attempt: dict[str, Any] = json.loads(Path(cell.workdir, "attempt.json").read_text())
    return attempt
