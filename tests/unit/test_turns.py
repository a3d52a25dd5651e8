"""Suites that want the same nodes: none is starved by another."""

from dataclasses import replace
from typing import Any

from benchmarks.makespan import BUILDS, Cell, Simulation
from orchestrator.running.waiting import Waiting
from tests.unit.test_dispatch import H200, a_dispatcher, a_node, started, waiting


def of(suite: str, name: str, **more: Any) -> Waiting:
    wanted: dict[str, Any] = {"labels": H200, "devices": 1} | more
    return replace(waiting(name, **wanted), suite=suite)


def test_suites_that_wait_for_the_same_take_turns() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=1, card="h200"))
    for number in range(4):
        for suite in ("large", "small"):
            dispatcher.add(of(suite, f"{suite} {number}"))
    order: list[str] = []
    while now := [*started(dispatcher)]:
        order += now
        dispatcher.ended(now[0])

    assert [cell.split()[0] for cell in order] == ["large", "small"] * 4


def test_a_suite_that_has_had_more_of_one_card_is_not_ahead_on_another() -> None:
    h200, mi300x = (
        a_node("a", devices=1, card="h200"),
        a_node("b", devices=1, cpus=1, card="mi300x"),
    )
    dispatcher = a_dispatcher(h200, mi300x)
    dispatcher.add(of("first", "long", seconds=900))
    assert started(dispatcher) == {"long": "a"}

    for suite in ("first", "second"):
        dispatcher.add(of(suite, f"of the {suite}", labels={"vm.card": "mi300x"}))

    assert started(dispatcher) == {"of the first": "b"}


def test_a_suite_of_many_devices_does_not_starve_one_of_few() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=2, card="h200"))
    for number in range(9):
        dispatcher.add(of("large", f"both {number}", devices=2))
    dispatcher.add(of("small", "one"))
    [first] = started(dispatcher)
    dispatcher.ended(first)

    assert [*started(dispatcher)] == ["one"]


def test_a_suite_of_few_devices_does_not_starve_one_of_many() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=2, card="h200"))
    dispatcher.add(of("large", "first", devices=2))
    assert [*started(dispatcher)] == ["first"]
    dispatcher.add(of("large", "second", devices=2))
    for number in range(9):
        dispatcher.add(of("small", f"one {number}"))
    order: list[str] = []
    running = ["first"]
    while running:
        dispatcher.ended(running.pop(0))
        running += (now := [*started(dispatcher)])
        order += now

    assert order.index("second") < 5


def cells(suite: str, count: int) -> tuple[Cell, ...]:
    """Of three hosts, each of which starts in 20 s."""
    return tuple(
        Cell(
            waiting=of(
                suite,
                f"{suite} {number}",
                seconds=100.0,
                host=f"{suite} {number % 3}",
                build=BUILDS[0],
            ),
            takes_s=100.0,
        )
        for number in range(count)
    )


def test_a_small_suite_beside_a_large_one_takes_about_twice_its_own_time() -> None:
    nodes = tuple(a_node(f"n{number}", devices=4, card="h200") for number in range(4))
    alone = Simulation(nodes=nodes, cells=cells("small", 64))
    beside = Simulation(nodes=nodes, cells=(*cells("large", 1600), *cells("small", 64)))

    alone_s, all_s = alone.makespan_s(), beside.makespan_s()
    small_s = max(ended for cell, ended in beside.ended_s.items() if cell.startswith("small"))

    assert small_s < 2.5 * alone_s
    assert all_s < 1.05 * (1600 + 64) * 100.0 / 16
