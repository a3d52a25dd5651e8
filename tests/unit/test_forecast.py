"""How long a run will still take: against runs that were recorded, and the rules one by one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from jobs.contract.terms import EngineMode
from orchestrator.running.forecast import HOST_BOOT_S, Forecast, Running, Work

TIMELINES = sorted((Path(__file__).parent / "timelines").glob("*.json"))
"""Real runs on two cores: of each cell its begin, its end, its own seconds, those of the run
before (null: it was not in that), and the number of its host."""

WITHIN = 0.25
GRAIN = 0.05
"""Of the whole run: what is left of its last cells can't be told any closer than that."""


@dataclass
class Replay:
    """A recorded run, played once more."""

    file: Path

    def __post_init__(self) -> None:
        recorded = json.loads(self.file.read_text())
        self.at_once = recorded["at_once"]
        self.cells = {str(number): cell for number, cell in enumerate(recorded["cells"])}
        self.boot_s = HOST_BOOT_S[EngineMode(recorded["engine_mode"])]
        self.total_s = max(end for _, end, *_ in self.cells.values())

    def estimates(self) -> Iterator[tuple[float, float]]:
        """Each second: what was left really, and the estimate of then."""
        forecast = Forecast(self._work(), at_once=self.at_once)
        ends = sorted((end, name) for name, (_, end, *_) in self.cells.items())
        for now in range(int(self.total_s)):
            while ends[0][0] <= now:
                end, name = ends.pop(0)
                begin, _, seconds, *_ = self.cells[name]
                forecast.ended(name, seconds, age_s=end - begin)
            yield self.total_s - now, forecast.left_s(self._running(now))

    def _work(self) -> dict[str, Work]:
        typical = median(cell[3] for cell in self.cells.values() if cell[3] is not None)
        return {
            name: Work(seconds=earlier or typical, host=host, boot_s=self.boot_s)
            for name, (_, _, _, earlier, host) in self.cells.items()
        }

    def _running(self, now: float) -> dict[str, Running]:
        running: dict[str, Running] = {}
        for name, (begin, end, seconds, *_) in self.cells.items():
            if begin <= now < end:
                waited = max(0.0, end - begin - seconds)
                forked = waited if now - begin >= waited else None
                running[name] = Running(age_s=now - begin, forked_after_s=forked)
        return running


@pytest.mark.parametrize("file", TIMELINES, ids=[file.stem for file in TIMELINES])
def test_from_half_way_on_the_estimate_is_within_a_quarter_of_the_truth(file: Path) -> None:
    replay = Replay(file)

    wrong = [
        (left_s, estimate_s)
        for left_s, estimate_s in replay.estimates()
        if left_s <= replay.total_s / 2
        and abs(estimate_s - left_s) > max(WITHIN * left_s, GRAIN * replay.total_s)
    ]

    assert wrong == []


def test_cells_go_side_by_side() -> None:
    work = {name: Work(seconds=6.0) for name in "abcd"}

    assert Forecast(work, at_once=1).left_s({}) == 24
    assert Forecast(work, at_once=2).left_s({}) == 12


def test_a_host_starts_once_and_its_cells_wait_for_it() -> None:
    work = {name: Work(seconds=6.0, host="h", boot_s=20.0) for name in "abcd"}

    assert Forecast(work, at_once=2).left_s({}) == 32


def test_the_longest_cell_decides_when_it_is_the_last() -> None:
    work = {"a": Work(seconds=1.0), "b": Work(seconds=60.0)}

    assert Forecast(work, at_once=8).left_s({}) == 60


def test_what_a_cell_has_been_at_for_a_while_is_not_to_come() -> None:
    forecast = Forecast({"a": Work(seconds=60.0)}, at_once=1)

    assert forecast.left_s({"a": Running(age_s=50.0, forked_after_s=5.0)}) == 15


def test_a_cell_that_is_late_is_not_expected_to_end_at_once() -> None:
    forecast = Forecast({"a": Work(seconds=60.0)}, at_once=1)

    assert forecast.left_s({"a": Running(age_s=500.0, forked_after_s=0.0)}) == 6


def test_a_slower_machine_than_last_time_is_noticed() -> None:
    forecast = Forecast({name: Work(seconds=10.0) for name in "ab"}, at_once=1)

    forecast.ended("a", 30.0)

    assert 20 < forecast.left_s({}) < 30


def test_how_long_a_host_takes_is_learnt_from_the_first() -> None:
    work = {name: Work(seconds=1.0, host=name, boot_s=20.0) for name in "ab"}
    forecast = Forecast(work, at_once=1)

    forecast.ended("a", 1.0, age_s=51.0)

    assert forecast.left_s({}) == 51


def test_a_host_whose_start_nobody_saw_is_up_and_says_nothing_of_others() -> None:
    work = {name: Work(seconds=1.0, host=name, boot_s=20.0) for name in "ab"}
    forecast = Forecast(work, at_once=1)

    forecast.ended("a", 1.0)

    assert forecast.left_s({}) == 21


def test_a_run_that_is_over_takes_no_time() -> None:
    assert Forecast({}, at_once=2).left_s({}) == 0
