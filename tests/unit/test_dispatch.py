"""Which cell goes where, and when."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.running.cluster import Needs, Node
from orchestrator.running.dispatch import Dispatcher
from orchestrator.running.forecast import Work
from orchestrator.running.waiting import Waiting

H200 = {"vm.card": "h200"}


def a_node(name: str, *, devices: int = 0, cpus: int = 8, **labels: str) -> Node:
    return Node(
        id=name,
        name=name,
        address="",
        vendor="cpu",
        card=None,
        arch=None,
        devices=devices,
        cpus=cpus,
        memory_gib=64,
        labels={"vm.cpu": "yes", **{f"vm.{key}": value for key, value in labels.items()}},
    )


def waiting(  # noqa: PLR0913  what the tests vary
    cell_id: str,
    *,
    seconds: float = 1.0,
    host: str | None = None,
    labels: dict[str, str] | None = None,
    devices: int = 0,
    memory_gib: float = 1.0,
    build: str = "v",
    avoid: Sequence[str] = (),
    nodes: int = 1,
) -> Waiting:
    return Waiting(
        cell_id=cell_id,
        needs=Needs(labels=labels or {}, devices=devices, memory_gib=memory_gib, nodes=nodes),
        work=Work(seconds=seconds, host=host, boot_s=20.0 if host else 0.0),
        build=build,
        avoid=frozenset(avoid),
    )


def a_dispatcher(*nodes: Node, builds: Sequence[str] = ("v",)) -> Dispatcher:
    dispatcher = Dispatcher()
    for node in nodes:
        dispatcher.join(node)
        for build in builds:
            dispatcher.open(node.id, build)
    return dispatcher


def started(dispatcher: Dispatcher) -> dict[str, str]:
    """Cell to node, in the order in which they start."""
    return {cell.cell_id: node.id for cell, (node, *_) in dispatcher.starts()}


def test_the_longest_go_first() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=2))
    for cell_id, seconds in {"short": 1.0, "long": 9.0, "middle": 5.0}.items():
        dispatcher.add(waiting(cell_id, seconds=seconds))

    assert [*started(dispatcher)] == ["long", "middle"]

    dispatcher.ended("long")

    assert [*started(dispatcher)] == ["short"]


def test_few_cells_spread_over_many_nodes() -> None:
    dispatcher = a_dispatcher(a_node("a"), a_node("b"))
    dispatcher.add(waiting("1"))
    dispatcher.add(waiting("2"))

    assert {*started(dispatcher).values()} == {"a", "b"}


def test_a_place_goes_on_with_the_host_that_it_has() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=1))
    for number in range(3):
        dispatcher.add(waiting(f"x{number}", seconds=30.0, host="x"))
        dispatcher.add(waiting(f"y{number}", seconds=25.0, host="y"))
    order: list[str] = []
    while now := [*started(dispatcher)]:
        order += now
        dispatcher.ended(now[0])

    assert order == ["x0", "x1", "x2", "y0", "y1", "y2"]


def test_a_second_host_starts_elsewhere_only_if_there_is_work_enough_for_it() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=1), a_node("b", cpus=1))
    for number in range(4):
        dispatcher.add(waiting(f"little-{number}", seconds=5.0, host="little"))

    assert len(started(dispatcher)) == 1

    for number in range(10):
        dispatcher.add(waiting(f"much-{number}", seconds=15.0, host="much"))
    [now] = started(dispatcher)

    assert now.startswith("much")


def test_what_needs_a_card_goes_before_what_any_node_can_run() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=1, cpus=1, card="h200"))
    dispatcher.add(waiting("anywhere", seconds=99.0))
    dispatcher.add(waiting("card", labels=H200, devices=1))

    assert started(dispatcher) == {"card": "gpu"}


def test_cells_of_many_devices_are_not_kept_waiting_by_those_of_few() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=2, card="h200"))
    dispatcher.add(waiting("1", labels=H200, devices=1))
    dispatcher.add(waiting("2", labels=H200, devices=1))
    assert len(started(dispatcher)) == 2
    dispatcher.add(waiting("both", labels=H200, devices=2))
    dispatcher.add(waiting("3", labels=H200, devices=1))
    dispatcher.add(waiting("none"))

    dispatcher.ended("1")

    assert [*started(dispatcher)] == ["none"]

    dispatcher.ended("2")

    assert [*started(dispatcher)] == ["both"]

    dispatcher.ended("both")

    assert [*started(dispatcher)] == ["3"]


def test_two_cells_that_each_need_more_than_half_never_hold_each_other_up() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=4, card="h200"))
    dispatcher.add(waiting("1", labels=H200, devices=3))
    dispatcher.add(waiting("2", labels=H200, devices=3))

    [first] = started(dispatcher)
    dispatcher.ended(first)
    [second] = started(dispatcher)

    assert {first, second} == {"1", "2"}


def test_memory_is_not_given_twice() -> None:
    dispatcher = a_dispatcher(a_node("a"))
    dispatcher.add(waiting("1", memory_gib=40))
    dispatcher.add(waiting("2", memory_gib=40))
    dispatcher.add(waiting("little", seconds=0.1, memory_gib=10))

    assert len(started(dispatcher)) == 2


def test_a_node_that_ends_cells_faster_than_they_come_gets_some_ahead() -> None:
    dispatcher = a_dispatcher(a_node("gpu", cpus=1, devices=2, card="h200"))
    for cell_id in "123":
        dispatcher.add(waiting(cell_id, host="x", memory_gib=60))
        dispatcher.add(waiting(f"y{cell_id}", host="y"))
    [first] = started(dispatcher)

    dispatcher.give_ahead("gpu", 5)
    more = started(dispatcher)

    assert {cell.startswith("y") for cell in more} == {first.startswith("y")}
    assert len(more) == 2


def test_devices_are_never_given_ahead() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=2, card="h200"))
    for cell_id in "12":
        dispatcher.add(waiting(cell_id, labels=H200, devices=2))
    dispatcher.give_ahead("gpu", 5)

    assert len(started(dispatcher)) == 1


def test_a_node_gets_cells_of_the_builds_that_it_has() -> None:
    dispatcher = a_dispatcher(a_node("a"), builds=())
    dispatcher.add(waiting("1", build="v"))
    assert not started(dispatcher)

    dispatcher.open("a", "v")

    assert started(dispatcher) == {"1": "a"}


def test_a_node_that_joins_late_is_used() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=1))
    dispatcher.add(waiting("1"))
    dispatcher.add(waiting("2"))
    assert len(started(dispatcher)) == 1

    dispatcher.join(a_node("b"))
    dispatcher.open("b", "v")

    assert [*started(dispatcher).values()] == ["b"]


def test_what_no_node_has_is_told_until_one_has_it() -> None:
    dispatcher = a_dispatcher(a_node("a"))
    dispatcher.add(waiting("card", labels=H200, devices=4))
    dispatcher.add(waiting("anywhere"))

    [lacking] = dispatcher.homeless()
    assert (lacking.labels, lacking.devices) == (H200, 4)

    dispatcher.join(a_node("gpu", devices=4, card="h200"))
    assert not dispatcher.homeless()

    dispatcher.leave("gpu")
    assert len(dispatcher.homeless()) == 1


def test_what_ran_on_a_node_that_is_gone_is_told_and_the_rest_goes_elsewhere() -> None:
    dispatcher = a_dispatcher(a_node("a", cpus=1), a_node("b", cpus=1))
    for cell_id in "123":
        dispatcher.add(waiting(cell_id))
    [lost] = [cell for cell, node in started(dispatcher).items() if node == "a"]

    assert dispatcher.leave("a") == (lost,)

    for cell_id in ("1", "2"):
        dispatcher.ended(cell_id)
    assert started(dispatcher) == {"3": "b"}


def test_what_no_node_can_run_any_more_is_handed_back() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=1, card="h200"), a_node("a"))
    dispatcher.add(waiting("card", labels=H200, devices=1))
    dispatcher.add(waiting("anywhere"))
    assert not dispatcher.stranded()

    dispatcher.leave("gpu")

    assert [cell.cell_id for cell in dispatcher.stranded()] == ["card"]
    assert dispatcher.waiting == 1


def test_what_cannot_be_built_on_any_node_is_handed_back() -> None:
    dispatcher = a_dispatcher(a_node("a"), a_node("b"), builds=())
    dispatcher.add(waiting("1"))
    dispatcher.close("a", "v")
    assert not dispatcher.stranded()

    dispatcher.close("b", "v")

    assert [cell.cell_id for cell in dispatcher.stranded()] == ["1"]


def test_a_node_in_quarantine_gets_only_what_no_other_can_run() -> None:
    dispatcher = a_dispatcher(a_node("gpu", devices=1, card="h200"), a_node("a", cpus=1))
    dispatcher.shun("gpu")
    for cell_id in "12":
        dispatcher.add(waiting(cell_id))
    dispatcher.add(waiting("card", labels=H200, devices=1))

    assert sorted(started(dispatcher).values()) == ["a", "gpu"]


def test_a_cell_goes_elsewhere_after_bad_luck_if_there_is_an_elsewhere() -> None:
    dispatcher = a_dispatcher(a_node("a"))
    dispatcher.add(waiting("1", avoid=["a"]))

    assert started(dispatcher) == {"1": "a"}

    dispatcher.join(a_node("b"))
    dispatcher.open("b", "v")
    dispatcher.add(waiting("2", avoid=["a"]))

    assert started(dispatcher) == {"2": "b"}


KINDS = st.tuples(
    st.floats(0.1, 100), st.sampled_from([None, "x", "y", "z"]), st.sampled_from([0, 1, 2, 4])
)


@given(cells=st.lists(KINDS, max_size=40), nodes=st.integers(1, 3))
def test_every_cell_starts_once_and_no_node_is_ever_overbooked(
    cells: list[tuple[float, str | None, int]], nodes: int
) -> None:
    dispatcher = a_dispatcher(
        *(a_node(f"n{number}", devices=4, cpus=3, card="h200") for number in range(nodes))
    )
    wanted: dict[str, int] = {}
    for number, (seconds, host, devices) in enumerate(cells):
        wanted[str(number)] = devices
        dispatcher.add(
            waiting(str(number), seconds=seconds, host=host, labels=H200, devices=devices)
        )
    running: dict[str, str] = {}
    seen: list[str] = []
    while dispatcher.waiting or running:
        running |= started(dispatcher)
        seen += [cell for cell in running if cell not in seen]
        for node in {*running.values()}:
            there = [cell for cell, where in running.items() if where == node]
            assert len(there) <= 3
            assert sum(wanted[cell] for cell in there) <= 4
        assert running
        done = min(running, key=int)
        dispatcher.ended(done)
        del running[done]

    assert sorted(seen) == sorted(wanted)
