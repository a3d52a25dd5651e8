"""Which cells a budget is enough for."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Budget, Hardware
from orchestrator.running.budget import Fitted, left_out, within
from orchestrator.running.cluster import Node
from orchestrator.running.forecast import Work
from orchestrator.running.plan import ANY_CPU, make_plan
from tests.builders import H100, MI300X, a_cell

CELLS = tuple(
    a_cell("/".join(names))
    for names in itertools.product(
        ["cpu"], ["llama", "gemma3", "mixtral"], ["auto", "v1"], ["a", "b"]
    )
)


def a_node(hardware: Hardware | None = None, *, devices: int = 0, cpus: int = 1) -> Node:
    described = hardware or Hardware(vendor="cpu")
    labels = {"vm.vendor": described.vendor, "vm.card": described.card, "vm.arch": described.arch}
    return Node(
        id=described.card or "cpu",
        name="node",
        address="",
        vendor=described.vendor,
        card=described.card,
        arch=described.arch,
        devices=devices,
        cpus=cpus,
        memory_gib=100,
        labels={**ANY_CPU, **{name: value for name, value in labels.items() if value}},
    )


def fitted(
    cells: tuple[Cell, ...],
    budget: Budget,
    *nodes: Node,
    known: tuple[str, ...] = (),
    **work: object,
) -> Fitted:
    cost = Work(**{"seconds": 60.0} | work)  # type: ignore[arg-type]
    plan = make_plan(cells, nodes or (a_node(),))
    return within(plan, {cell.id: cost for cell in cells}, budget, nodes or (a_node(),), known)


def chosen(*arguments: object, **more: object) -> list[str]:
    return [cell.id for cell in fitted(*arguments, **more).chosen]  # type: ignore[arg-type]


def test_without_a_budget_every_cell_runs() -> None:
    result = fitted(CELLS, Budget())

    assert {cell.id for cell in result.chosen} == {cell.id for cell in CELLS}
    assert (result.left_out, result.coverage) == ({}, 1.0)


def test_minutes_are_of_the_clock_so_cells_side_by_side_take_them_once() -> None:
    assert len(chosen(CELLS, Budget(max_minutes=3))) == 3
    assert len(chosen(CELLS, Budget(max_minutes=3), a_node(cpus=2))) == 6


def test_what_is_left_out_says_how_much_is_known_without_it() -> None:
    result = fitted(CELLS, Budget(max_minutes=4))

    assert len(result.chosen) == 4
    assert {*result.left_out} == {cell.id for cell in CELLS} - {cell.id for cell in result.chosen}
    assert {*result.left_out.values()} == snapshot(
        {"left out: the budget of 4 minutes was used up by 4 cells that cover 83% of all pairs"}
    )


def test_the_cells_that_show_most_pairs_are_chosen() -> None:
    assert fitted(CELLS, Budget(max_minutes=6)).coverage == 1.0


def test_pairs_that_kept_verdicts_show_are_not_shown_again() -> None:
    known = ("cpu/llama/auto/a", "cpu/gemma3/v1/b")

    assert chosen(CELLS, Budget(max_minutes=1), known=known)[0].startswith("cpu/mixtral/")


def test_a_cell_that_does_not_fit_leaves_room_for_one_that_does() -> None:
    long, short = a_cell("cpu/long/auto/a"), a_cell("cpu/short/auto/a")
    work = {long.id: Work(seconds=600.0), short.id: Work(seconds=30.0)}

    result = within(make_plan([long, short], [a_node()]), work, Budget(max_minutes=1), [a_node()])

    assert [cell.id for cell in result.chosen] == [short.id]


def test_gpu_hours_are_devices_times_hours() -> None:
    cells = tuple(a_cell(f"h100/m{n}/auto/a", hardware=H100, devices=4) for n in range(8))
    node = a_node(H100, devices=8, cpus=64)

    assert len(chosen(cells, Budget(max_gpu_hours=12), node, seconds=3600.0)) == 3


def test_a_card_of_which_there_are_few_does_not_wait_for_another() -> None:
    few = tuple(a_cell(f"h100/m{n}/auto/a", hardware=H100) for n in range(4))
    many = tuple(a_cell(f"mi300x/m{n}/auto/a", hardware=MI300X) for n in range(4))
    nodes = (a_node(H100, devices=1, cpus=64), a_node(MI300X, devices=4, cpus=64))

    ids = chosen((*few, *many), Budget(max_minutes=2), *nodes)

    assert sum(cell_id.startswith("h100") for cell_id in ids) == 2
    assert sum(cell_id.startswith("mi300x") for cell_id in ids) == 4


def test_a_card_that_is_waited_for_is_counted_as_one_that_came() -> None:
    cells = [a_cell(f"h100/m{n}/auto/a", hardware=H100, devices=2) for n in range(4)]
    plan = make_plan(cells, [a_node()], wait=True)
    work = {cell.id: Work(seconds=60.0) for cell in cells}

    assert len(within(plan, work, Budget(max_minutes=3), [a_node()]).chosen) == 3


def test_cells_of_the_cpu_and_emulated_ones_use_no_gpu() -> None:
    assert len(chosen(CELLS, Budget(max_gpu_hours=0.001))) == len(CELLS)


def test_the_first_cell_of_a_host_waits_until_it_is_up() -> None:
    assert len(chosen(CELLS, Budget(max_minutes=3), host="host", boot_s=60.0)) == 2


def test_a_budget_that_is_too_small_for_any_cell_says_so() -> None:
    reason = "left out: the budget of 0.5 minutes is not enough for it"

    assert {*fitted(CELLS, Budget(max_minutes=0.5)).left_out.values()} == {reason}


def test_both_limits_are_named() -> None:
    assert left_out(Budget(max_gpu_hours=2, max_minutes=10), 37, 0.9612) == snapshot(
        "left out: the budget of 2 GPU hours and 10 minutes was used up by 37 cells that cover "
        "96% of all pairs"
    )


@given(
    minutes=st.floats(0.1, 30),
    places=st.integers(1, 5),
    seconds=st.lists(st.floats(1, 600), min_size=12, max_size=12),
)
def test_no_more_is_chosen_than_can_be_done_in_time(
    minutes: float, places: int, seconds: list[float]
) -> None:
    work = {cell.id: Work(seconds=s) for cell, s in zip(CELLS, seconds, strict=True)}
    nodes = [a_node(cpus=places)]

    result = within(make_plan(CELLS, nodes), work, Budget(max_minutes=minutes), nodes)

    used_s = math.fsum(work[cell.id].seconds for cell in result.chosen)
    assert used_s <= places * minutes * 60 * (1 + 1e-9)
    assert {cell.id for cell in result.chosen} | result.left_out.keys() == work.keys()
