"""May it ship?"""

from datetime import date

import pytest

from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded import matrix
from orchestrator.concluded.gate import Decision, decide
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.concluded.waivers import Trouble
from tests.builders import a_cell, a_record

CELL = a_cell()
TODAY = date(2026, 12, 2)


def decision(record: Record | None, *waivers: Waiver) -> Decision:
    result = matrix.build([CELL], [record] if record else [])
    return decide(result, Gate(waivers=waivers), today=TODAY)


def a_waiver(expires: date | None = None) -> Waiver:
    return Waiver(cells="cpu/*", category="timeout", reason="known", owner="me", expires=expires)


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASSED])
def test_anything_but_a_pass_blocks_the_release(verdict: Verdict) -> None:
    assert not decision(a_record(verdict=verdict)).ships


def test_a_cell_without_a_record_blocks_the_release() -> None:
    blocked = decision(None)

    assert blocked.sentence() == "blocked: 1 not run of 1 cells"
    assert blocked.blockers[0].reason == "there is no record of it"


def test_all_passed_ships() -> None:
    assert decision(a_record()).sentence() == "ships: 1 of 1 cells passed"


def test_a_waived_failure_does_not_block_and_is_counted() -> None:
    decided = decision(a_record(verdict=Verdict.FAILED, category="timeout"), a_waiver())

    assert decided.sentence() == "ships: 0 of 1 cells passed, 1 waived"


def test_a_waiver_excuses_its_own_category_only() -> None:
    decided = decision(a_record(verdict=Verdict.FAILED, category="segfault"), a_waiver())

    assert decided.sentence() == "blocked: 1 failed (segfault) of 1 cells"


def test_what_was_not_run_cannot_be_waived() -> None:
    assert not decision(a_record(verdict=Verdict.NOT_RUN, category="timeout"), a_waiver()).ships


def test_an_expired_waiver_blocks_again_and_is_named() -> None:
    expired = a_waiver(expires=date(2026, 12, 1))
    decided = decision(a_record(verdict=Verdict.FAILED, category="timeout"), expired)

    assert not decided.ships
    [remark] = decided.remarks
    assert (remark.trouble, remark.waiver) == (Trouble.EXPIRED, expired)


def test_a_waiver_holds_on_its_last_day() -> None:
    waiver = a_waiver(expires=TODAY)

    assert decision(a_record(verdict=Verdict.FAILED, category="timeout"), waiver).ships
