"""What a person is told while a run goes on."""

import io

import pytest
from rich.console import Console

from orchestrator import progress
from orchestrator.forecast import Work
from orchestrator.progress import ConsoleProgress
from tests.builders import a_record


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_a_log_file_is_told_now_and_then_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, screen = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    shown = ConsoleProgress(Console(file=screen, width=200))
    work = {f"cpu/m{number}/b/c": Work(seconds=6.0) for number in range(20)}
    shown.planned(work, kept=20, cells=40, at_once=1, since=0.0)

    for cell_id in work:
        clock.now += 6
        shown.ended(a_record(cell_id))
        shown.look({})

    told = [line.strip() for line in screen.getvalue().splitlines() if "left" in line]
    assert told[0] == "0:36 26 of 40 cells done, 0 running, 14 left, about 84 s"
    assert len(told) == 3
