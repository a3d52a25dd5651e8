"""Who can run what, decided before anything starts."""

from dataclasses import replace

import pytest

from jobs.contract.terms import EngineMode
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Hardware
from orchestrator.running.cluster import Needs, Node
from orchestrator.running.plan import ANY_CPU, MEMORY_OF_HOST_GIB, host, make_plan, needs
from tests.builders import a_cell, an_emulated_cell

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


def test_an_emulated_cell_needs_no_device_and_little_memory() -> None:
    [cell] = make_plan([an_emulated_cell(memory_gib=500)], [a_node()]).runnable

    assert needs(cell) == Needs(labels=ANY_CPU, devices=0, memory_gib=1.0)


def test_an_emulated_engine_of_several_ranks_needs_a_core_and_memory_for_each() -> None:
    arguments = {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}
    [cell] = make_plan([an_emulated_cell(devices=4, engine_args=arguments)], [a_node()]).runnable

    assert needs(cell) == Needs(labels=ANY_CPU, devices=0, memory_gib=2.5, cpus=4)


def test_an_emulated_engine_of_more_ranks_than_its_model_has_devices_is_said() -> None:
    cell = an_emulated_cell(engine_args={"pipeline_parallel_size": 2})

    assert make_plan([cell], [a_node()]).unplaceable == {
        cell.id: "pipeline_parallel_size=2 takes 2 devices; say devices: 2 in the model"
    }


def test_a_card_that_is_not_described_for_emulation_is_said() -> None:
    cell = an_emulated_cell(hardware=H200)

    assert make_plan([cell], [a_node()]).unplaceable == {
        cell.id: "this hardware is described for engine_mode real only"
    }


def test_a_cell_that_was_seen_gets_what_it_and_its_host_took_in_quarters_of_a_gib() -> None:
    cell = a_cell(memory_gib=500)

    [plan_of] = make_plan([cell], [a_node()], {cell.id: 1.5}).needs.values()

    assert 1.5 + MEMORY_OF_HOST_GIB[EngineMode.REAL] <= plan_of.memory_gib == 2.25


def test_an_engine_of_several_workers_on_a_cpu_has_a_core_for_each() -> None:
    cell = a_cell(engine_args={"tensor_parallel_size": 2, "pipeline_parallel_size": 2})

    assert needs(cell).cpus == 4
    assert make_plan([cell], [a_node(cpus=2)]).unplaceable == {
        cell.id: "needs 4 CPUs on one node, node-7 has 2"
    }


@pytest.mark.parametrize(("cpus", "memory_gib", "at_once"), [(8, 64, 8), (8, 7, 3), (1, 64, 1)])
def test_no_more_cells_are_expected_at_once_than_cores_and_memory_carry(
    cpus: int, memory_gib: float, at_once: int
) -> None:
    plan = make_plan([a_cell(memory_gib=2)], [a_node(cpus=cpus, memory_gib=memory_gib)])

    assert plan.at_once == at_once


def order(*, cpus: int) -> list[str]:
    """Three cards with cells in turn, as the axes give them: a1 b1 c1 a2 b2 c2."""
    cells = [
        an_emulated_cell(f"{card}-emulated/{number}/auto/v0_32_gpu")
        for number in (1, 2)
        for card in "abc"
    ]
    plan = make_plan(cells, [a_node(cpus=cpus)])
    return [cell.axis("hardware") + cell.axis("model") for cell in plan.runnable]


def test_cells_that_share_a_host_run_together() -> None:
    assert order(cpus=1) == ["a1", "a2", "b1", "b2", "c1", "c2"]


def test_as_many_hosts_work_side_by_side_as_there_are_cores() -> None:
    assert order(cpus=2) == ["a1", "b1", "a2", "b2", "c1", "c2"]


def test_another_environment_is_another_host() -> None:
    one, other = an_emulated_cell(), an_emulated_cell("h100-emulated/llama/env/v0_32_gpu")
    again = an_emulated_cell("h100-emulated/other/auto/v0_32_gpu")
    other = replace(other, backend=replace(other.backend, env={"VLLM_SOMETHING": "1"}))

    assert make_plan([one, other, again], [a_node(cpus=1)]).runnable == (one, again, other)


def test_cells_that_differ_in_what_is_set_after_the_fork_share_a_host() -> None:
    one, other = an_emulated_cell(), an_emulated_cell(runner="V2")

    assert host(one) == host(other)


def test_a_cell_that_only_lacks_a_node_can_wait_for_one() -> None:
    lacking = a_cell("mi300x/llama/auto/v0_32", hardware=Hardware(vendor="amd", card="mi300x"))
    never = an_emulated_cell(hardware=H200)

    plan = make_plan([lacking, never], [a_node()], wait=True)

    assert plan.runnable == (lacking,)
    assert plan.missing == {lacking.id: "no node with mi300x (the cluster has: h200)"}
    assert [*plan.unplaceable] == [never.id]


def an_engine_of_two_nodes() -> Cell:
    return a_cell(
        "h200/llama/auto/v0_32",
        hardware=H200,
        devices=4,
        engine_args={"nnodes": 2, "tensor_parallel_size": 4},
    )


def test_an_engine_of_several_nodes_needs_the_same_share_of_each() -> None:
    cell = an_engine_of_two_nodes()
    nodes = [a_node(), a_node(id="2", name="node-8")]

    plan = make_plan([cell], nodes)

    assert plan.hosts == {cell.id: ("node-7", "node-8")}
    assert (plan.needs[cell.id].nodes, plan.needs[cell.id].devices) == (2, 2)
    assert plan.needs[cell.id].all_devices == 4


def test_too_few_nodes_for_an_engine_are_counted() -> None:
    cell = an_engine_of_two_nodes()
    small = a_node(id="2", name="node-8", devices=1)

    assert make_plan([cell], [a_node(), small]).unplaceable == {
        cell.id: "needs 2 nodes with 2 x h200 each, there is 1"
    }


def test_nodes_that_are_too_small_for_their_share_are_told_by_the_nearest_miss() -> None:
    cell = an_engine_of_two_nodes()

    assert make_plan([cell], [a_node(devices=1)]).unplaceable == {
        cell.id: "needs 2 h200 on one node, node-7 has 1"
    }


def test_an_engine_never_spans_nodes_of_two_cards() -> None:
    any_amd = Hardware(vendor="amd")
    cell = replace(an_engine_of_two_nodes(), hardware=any_amd)
    labels = {"vm.vendor": "amd"}
    nodes = [a_node(id=card, name=card, card=card, labels=labels) for card in ("mi300x", "mi355x")]

    assert make_plan([cell], nodes).hosts == {}
    assert make_plan([cell], [*nodes, replace(nodes[0], id="3", name="other")]).hosts == {
        cell.id: ("mi300x", "other")
    }


def test_an_engine_on_cpus_of_several_nodes_has_a_core_for_each_of_its_workers_there() -> None:
    cell = a_cell(engine_args={"nnodes": 2, "tensor_parallel_size": 4}, devices=4)

    assert (needs(cell).nodes, needs(cell).cpus, needs(cell).devices) == (2, 2, 0)
    assert make_plan([cell], [a_node()]).unplaceable == {
        cell.id: "needs 2 nodes with 2 CPUs each, there is 1"
    }
