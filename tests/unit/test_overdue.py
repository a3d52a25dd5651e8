"""Which cells their node should have ended long ago."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.contract.asked import Deadlines
from jobs.contract.terms import Phase
from orchestrator.running import overdue, underway
from orchestrator.running.overdue import GRACE_S, Overdue
from orchestrator.running.underway import RunningCells
from tests.builders import a_cell
from tests.unit.test_progress import Clock

DEADLINES = Deadlines(attempt_s=100.0, phases_s={Phase.IMPORT: 20.0}, quiet_s=50.0)
CELL = replace(a_cell(), deadlines=DEADLINES)
ALLOWED_S = 140.0 + GRACE_S


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (overdue, underway):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_cell_is_overdue_once_two_starts_of_a_host_its_attempt_and_some_grace_are_over(
    tmp_path: Path, clock: Clock
) -> None:
    late, submitted = Overdue([CELL], RunningCells()), {CELL.id: str(tmp_path)}
    (tmp_path / "request.json").touch()

    assert late.among(submitted) == ()
    clock.now += ALLOWED_S - 1
    assert late.among(submitted) == ()
    clock.now += overdue.LOOK_EVERY_S
    assert late.among(submitted) == (CELL.id,)


def test_a_cell_that_waits_for_its_turn_is_never_overdue(tmp_path: Path, clock: Clock) -> None:
    late = Overdue([CELL], RunningCells())
    clock.now += 10 * ALLOWED_S

    assert late.among({CELL.id: str(tmp_path)}) == ()


def test_another_attempt_has_its_own_time(tmp_path: Path, clock: Clock) -> None:
    late = Overdue([CELL], RunningCells())
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "request.json").touch()
    late.among({CELL.id: str(tmp_path / "1")})
    clock.now += ALLOWED_S + overdue.LOOK_EVERY_S

    assert late.among({CELL.id: str(tmp_path / "2")}) == ()
