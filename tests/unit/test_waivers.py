"""What a waiver excuses, and what is wrong with it."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from orchestrator.asked.policies import ConcernKind, Gate, Waiver
from orchestrator.concluded import comparison, matrix
from orchestrator.concluded.comparison import Side
from orchestrator.concluded.gate import Decision, decide
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.concluded.waivers import Trouble
from tests.builders import a_build, a_cell, a_record, a_report, an_attempt, groups

TODAY = date(2026, 12, 2)
FAILED, NOT_RUN, PASSED = Verdict.FAILED, Verdict.NOT_RUN, Verdict.PASSED
A, B, C = (f"cpu/{name}/auto/v0_32" for name in "abc")


def a_waiver(cells: str = "cpu/*", category: str | None = "silent_fallback", **more: Any) -> Waiver:
    return Waiver(cells=cells, category=category, reason="known", owner="me", **more)


def failed(cell_id: str, category: str = "silent_fallback") -> Record:
    return a_record(cell_id, FAILED, category)


def decided(waiver: Waiver, *records: Record) -> Decision:
    cells = [a_cell(record.cell_id) for record in records]
    return decide(matrix.build(cells, records), Gate(waivers=(waiver,)), today=TODAY)


def troubles(decision: Decision) -> list[Trouble]:
    return [remark.trouble for remark in decision.remarks]


def test_a_waived_failure_does_not_block_and_is_counted() -> None:
    decision = decided(a_waiver(), failed(A))

    assert decision.sentence() == "ships: 0 of 1 cells passed, 1 waived"
    assert troubles(decision) == []


def test_a_waiver_excuses_its_own_category_only() -> None:
    decision = decided(a_waiver(), failed(A, "segfault"))

    assert decision.sentence() == "blocked: 1 failed (segfault) of 1 cells"
    assert troubles(decision) == [Trouble.UNUSED]


def test_a_waiver_excuses_the_cells_of_its_glob_only() -> None:
    decision = decided(a_waiver(A), failed(A), failed(B))

    assert [blocker.cell_id for blocker in decision.blockers] == [B]


def test_a_verdict_can_be_waived_whatever_its_category() -> None:
    assert decided(
        a_waiver(category=None, verdict="failed"), failed(A), failed(B, "segfault")
    ).ships


def test_where_category_and_verdict_are_said_both_have_to_fit() -> None:
    waiver = a_waiver(verdict="regressed")

    assert not decided(waiver, failed(A)).ships


def test_what_was_not_run_cannot_be_waived() -> None:
    assert not decided(a_waiver(), a_record(A, NOT_RUN, "silent_fallback")).ships


def test_an_expired_waiver_blocks_again_and_is_named() -> None:
    decision = decided(a_waiver(expires=date(2026, 12, 1)), failed(A))

    assert not decision.ships
    [remark] = decision.remarks
    assert remark.trouble is Trouble.EXPIRED
    assert remark.text == f"ended on 2026-12-01; {A} is not excused any more"


def test_an_expired_waiver_that_nothing_needs_does_not_block() -> None:
    decision = decided(a_waiver(expires=date(2026, 12, 1)), a_record(A))

    assert decision.ships
    assert decision.remarks[0].text == "ended on 2026-12-01; nothing needs it: remove it"


def test_a_waiver_holds_on_its_last_day() -> None:
    assert decided(a_waiver(expires=TODAY), failed(A)).ships


def test_a_waiver_whose_cells_all_pass_blocks() -> None:
    decision = decided(a_waiver("cpu/[ab]/*"), a_record(A), a_record(B), a_record(C))

    assert decision.sentence() == "blocked: 1 waiver unexpectedly passing"
    [remark] = decision.remarks
    assert remark.trouble is Trouble.OUTLIVED
    assert remark.cells == (A, B)
    [blocker] = decision.blockers
    assert blocker.kind is ConcernKind.WAIVER
    assert blocker.reason.startswith("cpu/[ab]/*: ")


def test_it_is_not_outlived_while_a_cell_of_it_says_nothing() -> None:
    decision = decided(a_waiver("cpu/[ab]/*"), a_record(A), a_record(B, NOT_RUN))

    assert troubles(decision) == [Trouble.UNUSED]
    assert [each.kind for each in decision.blockers] == [ConcernKind.NOT_RUN]


def test_a_waiver_that_names_cells_without_need_is_too_broad_and_excuses_the_others() -> None:
    decision = decided(a_waiver(), failed(A), a_record(B), a_record(C))

    assert decision.ships
    [remark] = decision.remarks
    assert remark.trouble is Trouble.TOO_BROAD
    assert remark.text == f"names 3 cells, and {B} and {C} are not in need of it"


def test_a_waiver_that_matches_no_cell_is_unused() -> None:
    decision = decided(a_waiver("h100/*"), a_record(A))

    assert decision.ships
    assert troubles(decision) == [Trouble.UNUSED]


def test_luck_outlives_no_waiver() -> None:
    lucky = decided(a_waiver(category="cuda_error"), a_record(A))
    steady = decided(a_waiver(category=None, verdict="flaky"), a_record(A))

    assert lucky.ships
    assert steady.ships
    assert troubles(lucky) == troubles(steady) == [Trouble.UNUSED]


def test_a_flaky_cell_can_be_waived() -> None:
    flaky = replace(a_record(A), earlier=("segfault: SIGSEGV",))

    assert decided(a_waiver(category=None, verdict="flaky"), flaky).ships


# With a baseline


def ran(backend: str) -> Record:
    return a_record(
        A,
        outcome="runs",
        attempt=an_attempt(a_report(target=groups(backend)), cell_id=A),
        build=a_build(),
    )


def since(before: Record, after: Record, waiver: Waiver) -> Decision:
    cell = a_cell(A)
    base = Side(name="base", matrix=matrix.build([cell], [before]))
    run = Side(name="run", matrix=matrix.build([cell], [after]))
    compared = comparison.compare(base, run)
    return decide(run.matrix, Gate(waivers=(waiver,)), today=TODAY, comparison=compared)


DRIFT = a_waiver(category=None, verdict="drift")


def test_drift_can_be_waived_and_blocks_once_it_is_over() -> None:
    assert since(ran("X"), ran("Y"), DRIFT).ships
    over = since(ran("X"), ran("X"), DRIFT)

    assert troubles(over) == [Trouble.OUTLIVED]
    assert not over.ships


def test_what_is_said_of_a_change_is_unused_without_a_baseline() -> None:
    decision = decided(DRIFT, ran("X"))

    assert decision.ships
    assert decision.remarks[0].text == "tells of a change, and there is no baseline"


def test_a_cell_that_is_gone_can_be_waived_by_its_old_name() -> None:
    gone = a_cell("cpu/old/auto/v0_32", dtype="float16")
    base = Side(name="base", matrix=matrix.build([a_cell(A), gone], [ran("X")]))
    run = Side(name="run", matrix=matrix.build([a_cell(A)], [ran("X")]))
    compared = comparison.compare(base, run)

    def with_waiver(cells: str) -> Decision:
        gate = Gate(waivers=(a_waiver(cells, category=None, verdict="gone"),))
        return decide(run.matrix, gate, today=TODAY, comparison=compared)

    assert with_waiver("cpu/old/*").ships
    assert not with_waiver("cpu/other/*").ships


@pytest.mark.parametrize("verdict", ["failed", "regressed"])
def test_a_regression_is_a_failure_as_well(verdict: Any) -> None:
    decision = since(ran("X"), failed(A), a_waiver(category=None, verdict=verdict))

    assert decision.ships
