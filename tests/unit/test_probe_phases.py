"""How far a cell got."""

import json
import time
from pathlib import Path

from jobs.contract.seen import PhaseTime
from jobs.contract.terms import Phase
from jobs.probe import phases


def entry(phase: Phase, at: float) -> phases.Entry:
    return phases.Entry(phase=phase, at=at)


def test_a_phase_lasts_until_the_next_one_begins() -> None:
    entered = [entry(Phase.CONFIG, 10.0), entry(Phase.LOAD, 12.0)]

    assert phases.times(entered, until=15.0) == (
        PhaseTime(phase=Phase.CONFIG, seconds=2.0),
        PhaseTime(phase=Phase.LOAD, seconds=3.0),
    )


def test_a_phase_that_was_entered_twice_counts_twice() -> None:
    entered = [entry(Phase.KV_CACHE, 0.0), entry(Phase.PROFILE, 1.0), entry(Phase.KV_CACHE, 3.0)]

    assert phases.times(entered, until=7.0) == (
        PhaseTime(phase=Phase.PROFILE, seconds=2.0),
        PhaseTime(phase=Phase.KV_CACHE, seconds=5.0),
    )


def test_the_current_phase_and_its_time_lie_beside_the_report(tmp_path: Path) -> None:
    phases.enter(tmp_path, Phase.IMPORT)
    phases.enter(tmp_path, Phase.LOAD)

    current = json.loads((tmp_path / "phase.json").read_text())
    assert current["phase"] == "load"
    assert current["at"] == phases.history(tmp_path)[-1].at
    assert [entered.phase for entered in phases.history(tmp_path)] == [Phase.IMPORT, Phase.LOAD]


def test_a_clock_that_is_set_back_meanwhile_changes_nothing(tmp_path: Path) -> None:
    before = time.monotonic()
    phases.enter(tmp_path, Phase.IMPORT)

    assert before <= phases.history(tmp_path)[0].at <= time.monotonic()
