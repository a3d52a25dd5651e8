"""Which version of a row changed the outcome, from as few answers as will do."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.asked.config import Outcome
from orchestrator.concluded import bisection
from orchestrator.concluded.bisection import Criterion, Finding, Side, objections, search
from orchestrator.concluded.judge import Judgement, Verdict, not_run
from orchestrator.concluded.kinds import Known
from orchestrator.concluded.record import Record
from tests.builders import a_build, a_cell, a_report, an_attempt, groups

GOOD, BAD, SKIPPED = Side.GOOD, Side.BAD, Side.SKIPPED


def found(truth: Sequence[Side], known: Sequence[int] = ()) -> tuple[Finding, int]:
    """And how many had to be tried beside the ends."""
    last = len(truth) - 1
    sides = {at: truth[at] for at in (0, last, *known)}
    tries = 0
    while isinstance(at := search(len(truth), sides), int):
        assert at not in sides
        sides[at] = truth[at]
        tries += 1
    return at, tries


@given(some.integers(2, 300), some.data())
def test_the_one_that_changed_it_is_found_with_as_few_tries_as_can_be(
    count: int, data: some.DataObject
) -> None:
    first_bad = data.draw(some.integers(1, count - 1))
    truth = [GOOD] * first_bad + [BAD] * (count - first_bad)

    finding, tries = found(truth)

    assert list(finding.suspects) == [first_bad]
    assert finding.turns == ()
    assert tries <= bisection.tries_at_most(count)


@given(some.lists(some.sampled_from([GOOD, BAD, SKIPPED]), max_size=60), some.data())
def test_whatever_is_known_and_skipped_the_change_is_among_the_suspects(
    inner: list[Side], data: some.DataObject
) -> None:
    truth = [GOOD, *inner, BAD]
    known = data.draw(some.sets(some.integers(0, len(truth) - 1)))

    finding, _ = found(truth, [*known])

    assert truth[finding.before] is GOOD
    assert truth[finding.after] is BAD
    assert {truth[at] for at in finding.suspects[:-1]} <= {SKIPPED}


def test_what_is_known_already_is_not_tried_again() -> None:
    assert found([GOOD, GOOD, GOOD, BAD, BAD, BAD], known=[2, 3]) == (
        Finding(before=2, after=3, turns=()),
        0,
    )


def test_a_fix_is_found_where_the_bad_end_is_older() -> None:
    finding, _ = found([BAD, BAD, BAD, GOOD, GOOD])

    assert list(finding.suspects) == [3]


def test_those_that_say_nothing_stay_suspects_where_they_are_in_the_way() -> None:
    finding, _ = found([GOOD, GOOD, SKIPPED, SKIPPED, BAD, BAD])

    assert list(finding.suspects) == [2, 3, 4]


def test_that_it_changes_more_than_once_is_said() -> None:
    finding, _ = found([GOOD, BAD, GOOD, GOOD, BAD, BAD], known=[1, 2])

    assert len(finding.suspects) == 1
    assert finding.turns


CELL = a_cell("h100/llama/auto/v1")


def a_known(
    verdict: Verdict = Verdict.PASSED, category: str | None = None, backend: str = "A"
) -> Known:
    outcome: Outcome = "fails" if category not in {None, "silent_fallback"} else "runs"
    reasons = () if verdict is Verdict.PASSED else ("for a reason",)
    return Known(
        cell=CELL,
        record=Record(
            cell_id=CELL.id,
            build=a_build(),
            attempt=an_attempt(a_report(target=groups(backend))),
            judgement=Judgement(
                verdict=verdict, category=category, outcome=outcome, reasons=reasons
            ),
        ),
    )


def failed(category: str = "kv_layout_conflict") -> Known:
    return a_known(Verdict.FAILED, category)


NOT_RUN = Known(cell=CELL, record=Record(cell_id=CELL.id, judgement=not_run("it can't be built")))
LOST = failed("nccl_error")


@pytest.mark.parametrize(
    ("version", "side"),
    [
        (a_known(), GOOD),
        (a_known(backend="B"), GOOD),
        (failed(), BAD),
        (failed("internal_error"), SKIPPED),
        (NOT_RUN, SKIPPED),
        (LOST, SKIPPED),
    ],
)
def test_bad_is_what_fails_like_the_bad_end(version: Known, side: Side) -> None:
    criterion = Criterion(good=a_known(), bad=failed())

    assert not [*objections(criterion)]
    assert criterion.side(version)[0] is side


@pytest.mark.parametrize(
    ("version", "side"),
    [
        (a_known(backend="A"), GOOD),
        (a_known(backend="B"), BAD),
        (a_known(backend="C"), BAD),
        (failed(), SKIPPED),
    ],
)
def test_where_both_ends_pass_another_backend_tells_them_apart(version: Known, side: Side) -> None:
    criterion = Criterion(good=a_known(), bad=a_known(backend="B"))

    assert not [*objections(criterion)]
    assert criterion.side(version)[0] is side


@pytest.mark.parametrize(
    ("version", "side"),
    [
        (failed("internal_error"), BAD),
        (failed(), GOOD),
        (a_known(), GOOD),
        (failed("cuda_error"), SKIPPED),
    ],
)
def test_one_failure_may_be_looked_for_among_others(version: Known, side: Side) -> None:
    criterion = Criterion(good=failed(), bad=failed("internal_error"), until="internal_error")

    assert not [*objections(criterion)]
    assert criterion.side(version)[0] is side


@pytest.mark.parametrize(
    ("good", "bad", "until", "why"),
    [
        (failed(), failed("cuda_error"), None, "add --until CATEGORY"),
        (failed(), a_known(), None, "GOOD and BAD are the other way round"),
        (a_known(), a_known(), None, "both ends pass, with the same backends"),
        (NOT_RUN, failed(), None, "GOOD says nothing about vLLM: it can't be built"),
        (a_known(), LOST, None, "BAD says nothing about vLLM: for a reason"),
        (a_known(), failed(), "cuda_error", "BAD does not fail with cuda_error: it failed"),
        (failed(), failed(), "kv_layout_conflict", "GOOD fails with kv_layout_conflict as well"),
    ],
)
def test_ends_that_are_not_what_they_are_said_to_be_are_told(
    good: Known, bad: Known, until: str | None, why: str
) -> None:
    assert why in "\n".join(objections(Criterion(good=good, bad=bad, until=until)))
