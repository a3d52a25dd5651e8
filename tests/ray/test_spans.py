"""
An engine over two nodes: real ranks on each, and what becomes of it when one of them is lost.

Both raylets are on this machine, and their ranks reach each other through its loopback.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ray import marked
from tests.ray.conftest import StartDriver
from tests.ray.driver import GO, HANG, Driver
from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import NodeKind

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(600)]

MODEL = "llama_tp2_2nodes"
CELL = f"cpu/{MODEL}/auto/v0_32_strict_cpu"
WORDS = (
    "hardware=[cpu]",
    f"model=[{MODEL}]",
    # It hangs while it is loaded, which llama does not.
    f"model.{MODEL}.path=shipped:gemma3",
    "backend=[auto]",
    "build=[v0_32_strict_cpu]",
    f"build.v0_32_strict_cpu.patches=[{HANG}]",
)


def node(name: str) -> NodeKind:
    return NodeKind(name=name, cpus=1, memory_gib=5.0, labels={"vm.cpu": "yes"})


@pytest.fixture
def go(tmp_path: Path) -> Path:
    return tmp_path / "go"


@pytest.fixture
def cluster(go: Path) -> Iterator[MixedCluster]:
    nodes = [NodeKind(name="head", cpus=0), node("one"), node("two")]
    with MixedCluster(nodes, environment={GO: str(go)}) as cluster:
        yield cluster
    assert cluster.left() == []


def run(drive: StartDriver, cluster: MixedCluster) -> Driver:
    words = (*WORDS, f"cluster.address={cluster.address}")
    return drive(*words, environment=cluster.environment(), patience_s=400.0)


def ranks(cluster: MixedCluster, name: str) -> list[int]:
    return cluster.processes(name, "VLLM::Worker_TP")


def in_load(driver: Driver, cluster: MixedCluster) -> None:
    driver.until(
        lambda: all(ranks(cluster, name) for name in ("one", "two")), "no rank on each node"
    )


def of_cell(cluster: MixedCluster) -> list[str]:
    """Command lines of its engine's processes; hosts wait for the next one."""
    everywhere = [pid for kind in cluster.nodes for pid in cluster.processes(kind.name)]
    return [
        marked.command(pid)
        for pid in everywhere
        if "VLLM::" in marked.command(pid) or "/cells/" in str(_folder(pid))
    ]


def test_ranks_on_two_nodes_are_one_engine_that_ends_as_a_whole_and_is_tried_again(
    cluster: MixedCluster, drive: StartDriver, go: Path
) -> None:
    driver = run(drive, cluster)
    in_load(driver, cluster)
    lost = [ranks(cluster, name)[0] for name in ("one", "two")]

    os.kill(lost[1], signal.SIGKILL)
    driver.until(
        lambda: not any(map(os.path.exists, (f"/proc/{pid}" for pid in lost))),
        "the rank on the other node stays",
    )
    go.touch()

    assert driver.wait() == 0, driver.output
    [line] = driver.lines()
    assert line["cell_id"] == CELL
    [earlier] = line["earlier"]
    assert earlier.startswith("worker_killed: on two: ProcessEnded: ")
    assert "was ended by SIGKILL" in earlier
    report = line["attempt"]["report"]
    assert [(rank["rank"], rank["tensor"]) for rank in report["ranks"]] == [(0, 0), (1, 1)]
    assert {rank["node"] for rank in report["ranks"]} == {"one", "two"}
    assert [_backends(rank) for rank in report["ranks"]] == [{"CPU_ATTN"}] * 2
    assert len(report["tokens"]) == 8
    placement = line["attempt"]["placement"]
    assert {placement["node"], *placement["others"]} == {"one", "two"}
    assert of_cell(cluster) == []


@pytest.mark.long
@pytest.mark.parametrize("which", [0, -1], ids=["leads", "follows"])
def test_a_node_that_is_killed_takes_the_other_ranks_along(
    cluster: MixedCluster, drive: StartDriver, go: Path, which: int
) -> None:
    cluster.add(node("three"))
    driver = run(drive, cluster)
    names = ("one", "two", "three")
    driver.until(
        lambda: sum(bool(ranks(cluster, name)) for name in names) == 2, "no rank on two nodes"
    )
    by_rank = {_rank(pid): name for name in names for pid in ranks(cluster, name)}
    there = [by_rank[rank] for rank in sorted(by_rank)]

    cluster.kill(there[which])

    driver.until(lambda: not any(ranks(cluster, name) for name in there), "ranks stay")
    go.touch()
    assert driver.wait() == 0, driver.output
    assert Counter(line["cell_id"] for line in driver.lines()) == {CELL: 1}
    [line] = driver.lines()
    [earlier] = line["earlier"]
    assert earlier.startswith(f"on {there[which]}: ")
    nodes = {rank["node"] for rank in line["attempt"]["report"]["ranks"]}
    assert nodes == {*names} - {there[which]}
    assert of_cell(cluster) == []


def _backends(rank: dict[str, list[dict[str, str]]]) -> set[str]:
    return {group["backend"] for group in rank["target"]}


def _rank(pid: int) -> int:
    return int(marked.command(pid).split("VLLM::Worker_TP")[1].split()[0])


def _folder(pid: int) -> Path:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return Path()
