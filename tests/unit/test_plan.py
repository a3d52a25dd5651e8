"""Who can run what, decided before anything starts."""

from orchestrator.cluster import Node
from orchestrator.config import Hardware
from orchestrator.plan import make_plan
from tests.builders import a_cell

H200 = Hardware(vendor="nvidia", card="h200", arch="sm_90")


def a_node(**more: object) -> Node:
    given = {
        "id": "1",
        "name": "node-7",
        "address": "",
        "vendor": "nvidia",
        "card": "h200",
        "arch": "sm_90",
        "devices": 2,
        "cpus": 8,
        "memory_gib": 64,
        "labels": {
            "vm.cpu": "yes",
            "vm.vendor": "nvidia",
            "vm.card": "h200",
            "vm.arch": "sm_90",
        },
    }
    return Node(**(given | more))  # type: ignore[arg-type]


def test_a_cell_goes_to_the_nodes_that_carry_its_labels() -> None:
    cell = a_cell("h200/llama/auto/v0_32", hardware=H200)

    assert make_plan([cell], [a_node()]).hosts == {cell.id: ("node-7",)}


def test_every_node_runs_the_cpu_build() -> None:
    assert make_plan([a_cell()], [a_node()]).runnable == (a_cell(),)


def test_missing_hardware_is_said_with_what_there_is() -> None:
    cell = a_cell("mi300x/llama/auto/v0_32", hardware=Hardware(vendor="amd", card="mi300x"))

    assert make_plan([cell], [a_node()]).unplaceable == {
        cell.id: "no node with mi300x (the cluster has: h200)"
    }


def test_the_nearest_miss_is_named() -> None:
    cell = a_cell("h200/llama/auto/v0_32", hardware=H200, devices=4)

    assert make_plan([cell], [a_node()]).unplaceable == {
        cell.id: "needs 4 h200 on one node, node-7 has 2"
    }


def test_too_little_memory_is_named() -> None:
    cell = a_cell(memory_gib=100)

    assert make_plan([cell], [a_node()]).unplaceable == {
        cell.id: "needs 100 GiB of memory on one node, node-7 has 64.0"
    }
