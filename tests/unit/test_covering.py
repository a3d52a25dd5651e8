"""The order in which cells tell most, soonest."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.running.covering import coverage, ordered

AXES = st.tuples(*[st.lists(st.text("abcd", min_size=1), min_size=1, max_size=4, unique=True)] * 4)
PRODUCTS = AXES.map(lambda axes: ["/".join(names) for names in itertools.product(*axes)])
SOME = PRODUCTS.flatmap(lambda ids: st.lists(st.sampled_from(ids), unique=True))


def pairs(cell_id: str) -> set[tuple[tuple[int, str], ...]]:
    return set(itertools.combinations(enumerate(cell_id.split("/")), 2))


@given(SOME, SOME)
def test_every_cell_comes_once(cell_ids: list[str], known: list[str]) -> None:
    assert sorted(ordered(cell_ids, known)) == sorted(cell_ids)


@given(SOME, SOME)
def test_each_cell_adds_as_many_pairs_as_any_that_comes_later(
    cell_ids: list[str], known: list[str]
) -> None:
    shown = {pair for cell_id in known for pair in pairs(cell_id)}
    left = ordered(cell_ids, known)
    while left:
        assert len(pairs(left[0]) - shown) == max(len(pairs(later) - shown) for later in left)
        shown |= pairs(left.pop(0))


@given(SOME)
def test_all_pairs_are_shown_before_any_cell_that_adds_none(cell_ids: list[str]) -> None:
    shown: set[tuple[tuple[int, str], ...]] = set()
    adding = []
    for cell_id in ordered(cell_ids):
        adding.append(bool(pairs(cell_id) - shown))
        shown |= pairs(cell_id)

    assert adding == sorted(adding, reverse=True)


def test_a_tenth_of_the_cells_shows_all_pairs_which_no_tenth_by_chance_does() -> None:
    cell_ids = [
        "/".join(names) for names in itertools.product("abcde", "abcdefghi", "abcdefg", "abcd")
    ]
    tenth = len(cell_ids) // 10
    chance = random.Random(1)  # it only has to come again
    by_chance = max(coverage(chance.sample(cell_ids, tenth), cell_ids) for _ in range(100))

    assert by_chance < coverage(ordered(cell_ids)[:tenth], cell_ids) == 1.0


def test_without_cells_there_is_nothing_to_show() -> None:
    assert ordered([]) == []
    assert coverage([], []) == 1.0


def test_pairs_of_values_that_no_cell_has_do_not_count() -> None:
    assert coverage(["a/b/c/d"], ["a/b/c/d", "e/b/c/d"]) == 6 / 9
