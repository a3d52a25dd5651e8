"""Whose turn it is, where speed is measured."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobs.contract.attempts import Attempt
from jobs.contract.seen import SpeedSample, SpeedSeen
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Speed
from orchestrator.running.rounds import Rounds
from tests.builders import a_cell, a_report, an_attempt

SEEN = SpeedSeen(samples=(SpeedSample(tokens_per_s=1.0, ttft_s=1.0),))
MEASURED = an_attempt(a_report(speed=SEEN))


def cells(*ids: str, rounds: int = 3) -> list[Cell]:
    return [replace(a_cell(f"cpu/{each}"), speed=Speed(rounds=rounds)) for each in ids]


def played(
    rounds: Rounds, failing: Sequence[str] = (), node: str = "n1"
) -> tuple[list[str], list[str]]:
    """The turns that were taken, one after the other, and the cells that were through."""
    waiting, taken, through = list(rounds.first()), [], []
    while waiting:
        cell = waiting.pop(0)
        taken.append(cell.id.removeprefix("cpu/"))
        attempt: Attempt | None = None if cell.id.removeprefix("cpu/") in failing else MEASURED
        is_last, following = rounds.ended(cell, node, attempt)
        through += [cell.id] if is_last else []
        waiting += following
    return taken, through


def test_builds_of_one_question_take_turns_there_and_back() -> None:
    taken, through = played(Rounds(cells("m/b/x", "m/b/y"), {}))

    assert taken == ["m/b/x", "m/b/y", "m/b/y", "m/b/x", "m/b/x", "m/b/y"]
    assert through == ["cpu/m/b/x", "cpu/m/b/y"]


def test_who_fails_is_left_out_and_the_others_go_on() -> None:
    taken, through = played(Rounds(cells("m/b/x", "m/b/y"), {}), failing=["m/b/y"])

    assert taken == ["m/b/x", "m/b/y", "m/b/x", "m/b/x"]
    assert through == ["cpu/m/b/y", "cpu/m/b/x"]


def test_as_many_questions_are_begun_as_there_are_nodes_for_them() -> None:
    asked = cells("m/1/x", "m/2/x", "m/3/x", rounds=3)
    hosts = {cell.id: ("n1", "n2") for cell in asked}
    rounds = Rounds(asked, hosts)

    assert [cell.id for cell in rounds.first()] == ["cpu/m/1/x", "cpu/m/2/x"]
    for _ in range(2):
        assert rounds.ended(asked[0], "n1", MEASURED) == (False, (asked[0],))
    assert rounds.ended(asked[0], "n1", MEASURED) == (True, (asked[2],))


def test_a_question_stays_on_the_node_where_it_began() -> None:
    [one, other] = cells("m/b/x", "m/b/y")
    rounds = Rounds([one, other], {})
    list(rounds.first())

    assert rounds.elsewhere(one, ["n1", "n2"]) == frozenset()
    rounds.ended(one, "n1", MEASURED)
    assert rounds.elsewhere(other, ["n1", "n2"]) == {"n2"}


def test_every_round_is_kept_with_its_turn_and_its_place() -> None:
    [one, other] = cells("m/b/x", "m/b/y")
    rounds = Rounds([one, other], {})
    played(rounds)

    turns = [found.turn for found in rounds.measured(one.id)]
    assert (turns, [found.turn for found in rounds.measured(other.id)]) == ([1, 4, 5], [2, 3, 6])
    assert {found.session for found in rounds.measured(one.id)} == {
        found.session for found in rounds.measured(other.id)
    }


def test_what_waits_for_its_turn_is_forgotten_together_and_what_runs_is_then_the_last() -> None:
    [one, other] = cells("m/b/x", "m/b/y")
    rounds = Rounds([one, other], {})
    list(rounds.first())

    assert rounds.forget() == (one.id, other.id)
    assert rounds.ended(one, "n1", MEASURED) == (True, ())
    assert len(rounds.measured(one.id)) == 1


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), unique=True, min_size=1),
    st.integers(3, 5),
    st.integers(1, 3),
)
def test_everybody_has_all_of_their_turns_and_one_is_through_once(
    asked: list[tuple[str, str]], count: int, nodes: int
) -> None:
    there = cells(*(f"{question}/b/{build}" for question, build in asked), rounds=count)
    hosts = {cell.id: tuple(f"n{n}" for n in range(nodes)) for cell in there}
    rounds = Rounds(there, hosts)
    taken, through = played(rounds)

    assert sorted(through) == sorted(cell.id for cell in there)
    assert all(len(rounds.measured(cell.id)) == count for cell in there)
    assert len(taken) == count * len(there)
