"""Patterns are matched axis by axis, and mean what they mean to the whole id."""

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.asked.config import Constraint, Expectation, ExpectationRule, Suite
from orchestrator.asked.selection import Selection

NAMES = st.text("ab-", min_size=1, max_size=3)
IDS = st.tuples(NAMES, NAMES, NAMES, NAMES).map("/".join)
PATTERNS = st.one_of(
    st.text("ab*?/[]!", max_size=8), st.tuples(*[st.text("a*?")] * 4).map("/".join)
)


def selects(cell_id: str, **suite: object) -> bool:
    return Selection(Suite(name="s", **suite)).expectation(cell_id) is not None  # type: ignore[arg-type]


@given(IDS, PATTERNS)
def test_a_pattern_matches_the_ids_that_it_matches_as_a_whole(cell_id: str, pattern: str) -> None:
    assert selects(cell_id, select=(pattern,)) is fnmatchcase(cell_id, pattern)


@given(IDS, PATTERNS, PATTERNS, PATTERNS)
def test_what_is_excluded_or_not_allowed_where_a_constraint_holds_is_not_selected(
    cell_id: str, exclude: str, when: str, only: str
) -> None:
    rule = Constraint(when=when, only=only, why="for this test")

    assert selects(cell_id, exclude=(exclude,), constraints=(rule,)) is (
        not fnmatchcase(cell_id, exclude)
        and (not fnmatchcase(cell_id, when) or fnmatchcase(cell_id, only))
    )


def test_the_last_rule_that_matches_is_the_expectation() -> None:
    refused, fails = Expectation(outcome=("refused",)), Expectation(outcome=("fails",))
    rules = [("*", refused), ("h*/*/c/*", fails), ("*/x/*", Expectation())]
    suite = Suite(
        name="s", expectations=tuple(ExpectationRule(cells=c, expect=e) for c, e in rules)
    )
    selection = Selection(suite)

    assert selection.expectation("h100/b/c/d") == fails
    assert selection.expectation("h100/x/c/d") == Expectation()
    assert selection.expectation("b200/b/c/d") == refused
