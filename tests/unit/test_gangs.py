"""Cells whose engine spans several nodes: all of these at once, and nobody waits for ever."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.running.dispatch import Dispatcher
from tests.unit.test_dispatch import a_dispatcher, a_node, waiting

CARDS = {"vm.vendor": "amd"}


def nodes_of_started(dispatcher: Dispatcher) -> dict[str, set[str]]:
    return {cell.cell_id: {node.id for node in nodes} for cell, nodes in dispatcher.starts()}


def test_an_engine_of_two_nodes_starts_on_both_at_once() -> None:
    dispatcher = a_dispatcher(a_node("a"), a_node("b"), a_node("c"))
    dispatcher.add(waiting("both", nodes=2))

    [where] = nodes_of_started(dispatcher).values()

    assert len(where) == 2


def test_two_engines_of_two_nodes_never_hold_half_of_each() -> None:
    dispatcher = a_dispatcher(
        *(a_node(name, devices=8, card="h200") for name in "abc"),
    )
    for cell_id in "12":
        dispatcher.add(waiting(cell_id, labels={"vm.card": "h200"}, devices=8, nodes=2))

    [first] = nodes_of_started(dispatcher)
    assert nodes_of_started(dispatcher) == {}
    dispatcher.ended(first)
    [second] = nodes_of_started(dispatcher)

    assert {first, second} == {"1", "2"}


def test_an_engine_never_spans_nodes_of_two_cards() -> None:
    h200 = a_node("h200", devices=8, vendor="amd")
    others = [a_node(name, devices=8, vendor="amd") for name in "ab"]
    cards = {"h200": "mi300x", "a": "mi355x", "b": "mi355x"}
    dispatcher = a_dispatcher(*(replace(node, card=cards[node.id]) for node in [h200, *others]))
    dispatcher.add(waiting("both", labels=CARDS, devices=8, nodes=2))

    assert nodes_of_started(dispatcher) == {"both": {"a", "b"}}


def test_nodes_that_have_its_host_come_first() -> None:
    dispatcher = a_dispatcher(*(a_node(name) for name in "abc"))
    dispatcher.add(waiting("1", host="x", nodes=2))
    [where] = nodes_of_started(dispatcher).values()
    dispatcher.ended("1")

    dispatcher.add(waiting("2", host="x", nodes=2))

    assert nodes_of_started(dispatcher) == {"2": where}


def test_an_engine_of_two_nodes_is_not_kept_waiting_by_those_of_one() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=1), a_node("b", cpus=1))
    dispatcher.add(waiting("first"))
    dispatcher.add(waiting("second"))
    assert len(nodes_of_started(dispatcher)) == 2
    dispatcher.add(waiting("both", nodes=2))
    dispatcher.add(waiting("third"))

    dispatcher.ended("first")
    assert nodes_of_started(dispatcher) == {}
    dispatcher.ended("second")
    assert [*nodes_of_started(dispatcher)] == ["both"]
    dispatcher.ended("both")

    assert [*nodes_of_started(dispatcher)] == ["third"]


def test_only_its_share_of_a_node_is_kept_for_it() -> None:
    dispatcher = a_dispatcher(a_node("small", cpus=1), a_node("large", cpus=3))
    dispatcher.add(waiting("on-small", avoid=["large"]))
    assert nodes_of_started(dispatcher) == {"on-small": {"small"}}
    dispatcher.add(waiting("both", nodes=2))
    for cell_id in "123":
        dispatcher.add(waiting(cell_id))

    assert [*nodes_of_started(dispatcher).values()] == [{"large"}, {"large"}]


def test_it_waits_for_its_build_on_as_many_nodes_as_it_spans() -> None:
    dispatcher = a_dispatcher(a_node("a"), a_node("b"), builds=())
    dispatcher.add(waiting("both", nodes=2))
    dispatcher.open("a", "v")
    assert nodes_of_started(dispatcher) == {}

    dispatcher.open("b", "v")

    assert nodes_of_started(dispatcher) == {"both": {"a", "b"}}


def test_it_is_handed_back_once_too_few_nodes_are_left() -> None:
    dispatcher = a_dispatcher(a_node("a"), a_node("b"))
    dispatcher.add(waiting("both", nodes=2))
    assert not dispatcher.stranded()

    dispatcher.close("b", "v")

    assert [cell.cell_id for cell in dispatcher.stranded()] == ["both"]


def test_a_node_that_goes_takes_it_along_and_the_other_is_free_once_it_has_ended() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=1), a_node("b", cpus=1))
    dispatcher.add(waiting("both", nodes=2))
    assert [*nodes_of_started(dispatcher)] == ["both"]

    assert dispatcher.leave("b") == ("both",)

    dispatcher.add(waiting("one"))
    assert nodes_of_started(dispatcher) == {}
    dispatcher.ended("both")
    assert nodes_of_started(dispatcher) == {"one": {"a"}}


def test_it_goes_elsewhere_after_bad_luck_if_there_are_others_enough() -> None:
    dispatcher = a_dispatcher(*(a_node(name) for name in "abc"))
    dispatcher.add(waiting("1", nodes=2, avoid=["a"]))
    dispatcher.add(waiting("2", nodes=2, avoid=["a", "b"]))

    where = nodes_of_started(dispatcher)

    assert where["1"] == {"b", "c"}
    assert len(where["2"]) == 2


@given(
    cells=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 2, 4])), max_size=30),
    count=st.integers(3, 5),
)
def test_all_of_them_start_once_and_no_node_is_ever_overbooked(
    cells: list[tuple[int, int]], count: int
) -> None:
    dispatcher = a_dispatcher(
        *(a_node(f"n{number}", devices=4, cpus=3, card="h200") for number in range(count))
    )
    for number, (nodes, devices) in enumerate(cells):
        labels = {"vm.card": "h200"}
        dispatcher.add(waiting(str(number), labels=labels, devices=devices, nodes=nodes))
    running: dict[str, set[str]] = {}
    seen: list[str] = []
    while dispatcher.waiting or running:
        now = nodes_of_started(dispatcher)
        seen += now
        running |= now
        for node in set().union(*running.values()):
            there = [cell for cell, where in running.items() if node in where]
            assert len(there) <= 3
            assert sum(cells[int(cell)][1] for cell in there) <= 4
        assert all(len(where) == cells[int(cell)][0] for cell, where in running.items())
        assert running
        done = min(running, key=int)
        dispatcher.ended(done)
        del running[done]

    assert sorted(seen) == sorted(str(number) for number in range(len(cells)))
