"""Failures of real engines are called what they are."""

from collections.abc import Sequence

import pytest

from tests.provoking import table
from tests.provoking.runner import Answer, answers
from tests.provoking.scenarios import SCENARIOS

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


def test_provoked_failures_get_their_category_and_nobody_is_sent_the_wrong_way() -> None:
    assert_nearly_all_are_right([*answers(each for each in SCENARIOS if not each.slow)])


@pytest.mark.long
def test_so_do_the_slow_ones() -> None:
    assert_nearly_all_are_right([*answers(each for each in SCENARIOS if each.slow)])


def assert_nearly_all_are_right(found: Sequence[Answer]) -> None:
    wrong = "\n".join(table.line(answer) for answer in found if not answer.is_right)
    assert not any(answer.misleads for answer in found), wrong
    assert sum(answer.is_right for answer in found) >= 0.95 * len(found), wrong
