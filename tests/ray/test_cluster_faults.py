"""
What a cluster loses under a run: raylets are killed, stopped, come late; the driver dies.

Whatever it is, each cell ends with one terminal record, tried again elsewhere where its node
was to blame, and nothing stays behind on any node. docs/clusters.md has the table.
"""

import json
import os
import shutil
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.driver import GO, HANG, Driver
from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import NodeKind

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]

MODELS, BACKENDS = ("gemma3", "mixtral"), ("auto", "cpu_attn")
CELLS = {f"cpu/{model}/{backend}/v0_32_strict_cpu" for model in MODELS for backend in BACKENDS}
BUILD = ("build=[v0_32_strict_cpu]", f"build.v0_32_strict_cpu.patches=[{HANG}]")
HANGING = (
    "hardware=[cpu]",
    f"model=[{','.join(MODELS)}]",
    f"backend=[{','.join(BACKENDS)}]",
    "attempts=3",
    # Cells of unlike environments share no host, and would else wait for the node that has it.
    *(f"backend.{backend}.env={{OF_BACKEND: {backend}}}" for backend in BACKENDS),
    *(f"model.{model}.env={{OF_MODEL: {model}}}" for model in MODELS),
)

SOON_NOTICED = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}
"""A node that does not answer is given up after seconds; as Ray is shipped, after half a minute."""


def node(name: str) -> NodeKind:
    return NodeKind(name=name, cpus=2, memory_gib=9.0, labels={"vm.cpu": "yes", "site": name})


@dataclass(frozen=True, kw_only=True)
class Site:
    """A cluster of a head that drives and two nodes, and the file that lets engines go on."""

    cluster: MixedCluster
    go: Path

    def words(self, *more: str) -> tuple[str, ...]:
        return (*HANGING, *(more or BUILD), f"cluster.address={self.cluster.address}")

    def cells_on(self, name: str, phase: str = "load") -> dict[str, int]:
        """Cells in that phase, each with its process, that a node runs now."""
        folders = {pid: _folder(pid) for pid in self.cluster.processes(name, "jobs.probe.host")}
        return {
            _cell(folder): pid
            for pid, folder in folders.items()
            if "cells" in folder.parts and _leads(pid) and _phase(folder) == phase
        }

    def in_load(self) -> set[str]:
        return {cell for name in ("one", "two") for cell in self.cells_on(name)}

    def engines(self) -> list[int]:
        return [
            pid
            for kind in self.cluster.nodes
            for pid in self.cluster.processes(kind.name, "jobs.probe.host")
        ]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    go = tmp_path_factory.mktemp("site") / "go"
    nodes = [NodeKind(name="head", cpus=0), node("one"), node("two")]
    with MixedCluster(nodes, environment={GO: str(go), **SOON_NOTICED}) as cluster:
        yield Site(cluster=cluster, go=go)
    assert cluster.left() == []


@pytest.fixture
def site(there: Site) -> Site:
    there.go.unlink(missing_ok=True)
    return there


@pytest.fixture
def run(site: Site, drive: StartDriver) -> Callable[..., Driver]:
    def start(*build: str) -> Driver:
        return drive(*site.words(*build), environment=site.cluster.environment())

    return start


Run = Callable[..., Driver]


def terminal(driver: Driver) -> dict[str, dict[str, Any]]:
    """The record of each cell, of which there is one."""
    assert Counter(line["cell_id"] for line in driver.lines()) == dict.fromkeys(CELLS, 1)
    return driver.records()


def sites(records: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Where the attempt ran that counts."""
    return {
        cell: record["attempt"]["placement"]["labels"]["site"] for cell, record in records.items()
    }


def test_cells_of_a_node_that_is_killed_run_again_elsewhere(site: Site, run: Run) -> None:
    driver = run()
    driver.until(lambda: site.in_load() == CELLS, "not all cells are in load")
    lost = {*site.cells_on("one")}

    site.cluster.kill("one")

    driver.until(lambda: not site.cluster.processes("one"), "something of the node stays")
    driver.wait_for("one left the cluster")
    site.go.touch()
    assert driver.wait() == 0, driver.output
    records = terminal(driver)
    assert {*sites(records).values()} == {"two"}
    assert {cell for cell, record in records.items() if record["earlier"]} == lost
    site.cluster.add(node("one"))


def test_a_node_that_joins_late_is_given_cells(site: Site, run: Run) -> None:
    site.cluster.kill("one")
    driver = run()
    driver.until(lambda: len(site.cells_on("two")) == 2, "no cells in load")

    site.cluster.add(node("one"))

    driver.until(lambda: site.in_load() == CELLS, "the node that came gets no cell")
    site.go.touch()
    assert driver.wait() == 0, driver.output
    assert Counter(sites(terminal(driver)).values()) == {"one": 2, "two": 2}
    assert "one joined the cluster" in driver.output


def test_a_node_that_is_killed_before_it_could_report_has_not_run_its_cell(
    site: Site, run: Run
) -> None:
    """Its engine ended, and its report is written; the Ray worker that would send it is stopped."""
    driver = run()
    driver.until(lambda: site.in_load() == CELLS, "not all cells are in load")
    lost = {*site.cells_on("one")}
    for cell in lost:
        [worker] = site.cluster.processes("one", f"ray::{cell}")
        os.kill(worker, signal.SIGSTOP)
    site.go.touch()
    driver.until(
        lambda: all([*driver.folder.glob(f"runs/*/cells/{cell}/1/report.json")] for cell in lost),
        "no report",
    )

    site.cluster.kill("one")
    for cell in lost:
        for worker in site.cluster.processes("one", f"ray::{cell}"):
            os.kill(worker, signal.SIGKILL)

    assert driver.wait() == 0, driver.output
    records = terminal(driver)
    assert {*sites(records).values()} == {"two"}
    assert {cell for cell, record in records.items() if record["earlier"]} == lost
    driver.until(lambda: not site.cluster.processes("one"), "something of the node stays")
    site.cluster.add(node("one"))


def test_a_build_that_a_killed_node_was_making_is_made_by_another(
    site: Site, run: Run, tmp_path: Path
) -> None:
    patch = tmp_path / "own.diff"
    patch.write_text(HANG.read_text().replace("only llama", f"{uuid.uuid4().hex}: only llama"))
    driver = run("build=[v0_32_strict_cpu]", f"build.v0_32_strict_cpu.patches=[{patch}]")
    driver.until(lambda: "one: v0_32_strict_cpu: " in driver.output, "no build is made")

    site.cluster.kill("one")
    site.go.touch()

    assert driver.wait() == 0, driver.output
    records = terminal(driver)
    assert {*sites(records).values()} == {"two"}
    driver.until(lambda: not site.cluster.processes("one"), "something of the node stays")
    site.cluster.add(node("one"))
    _remove_overlay(records)


def test_a_killed_driver_takes_its_cells_along_on_every_node(site: Site, run: Run) -> None:
    driver = run()
    driver.until(lambda: site.in_load() == CELLS, "not all cells are in load")

    os.kill(driver.run, signal.SIGKILL)

    assert driver.wait() == 4
    driver.until(lambda: not site.engines(), "engines stay")

    site.go.touch()
    again = run()
    assert again.wait() == 0, again.output
    terminal(again)
    assert len([*driver.folder.glob("runs/*/run.json")]) == 1


def test_cells_of_a_node_whose_raylet_is_silent_count_once_and_it_is_no_node_any_more(
    site: Site, run: Run
) -> None:
    driver = run()
    driver.until(lambda: site.in_load() == CELLS, "not all cells are in load")
    lost = {*site.cells_on("one")}

    site.cluster.stop("one")

    driver.wait_for("one left the cluster")
    site.go.touch()
    assert driver.wait() == 0, driver.output
    records = terminal(driver)
    # Its workers still speak to the driver: what they say before Ray gives them up does count.
    elsewhere = {cell for cell, name in sites(records).items() if name == "two"}
    assert {cell for cell, record in records.items() if record["earlier"]} == lost & elsewhere

    site.cluster.go_on("one")
    driver.until(lambda: not site.cluster.processes("one"), "something of the node stays")
    site.cluster.add(node("one"))


def _remove_overlay(records: dict[str, dict[str, Any]]) -> None:
    """It was made for this test only, into the cache that all share; its base is everybody's."""
    entries = {
        Path(entry) for record in records.values() for entry in record["build"]["path_entries"]
    }
    for folder in {folder for entry in entries for folder in (entry, *entry.parents)}:
        if folder.parent.name == "overlays":
            shutil.rmtree(folder)


def _folder(pid: int) -> Path:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink()
    return Path()


def _cell(folder: Path) -> str:
    return "/".join(folder.parts[folder.parts.index("cells") + 1 : -1])


def _leads(pid: int) -> bool:
    """Cells lead a session of their own; their keepers and what they start do not."""
    with suppress(ProcessLookupError):
        return os.getsid(pid) == pid
    return False


def _phase(folder: Path) -> str | None:
    with suppress(ValueError, OSError):
        return str(json.loads((folder / "phase.json").read_text())["phase"])
    return None
