"""What a person is told while a run goes on, and how long it may take."""

import io

import pytest
from rich.console import Console

from orchestrator import progress
from orchestrator.history import A_GUESS_S, AN_EMULATED_GUESS_S, HOST_BOOT_S, estimate_s
from orchestrator.progress import ConsoleProgress
from tests.builders import a_record


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_a_long_run_says_now_and_then_how_long_it_will_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, screen = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    shown = ConsoleProgress(Console(file=screen, width=200))
    shown.planned(100, todo=80)

    for _ in range(20):
        clock.now += 6
        shown.ended(a_record())

    told = [line for line in screen.getvalue().splitlines() if "left" in line]
    assert told[0].strip() == "0:36 74 cells left, about 8 min at the pace so far"
    assert len(told) == 3


def test_cells_that_were_never_run_are_guessed_by_their_engine_mode() -> None:
    known = {"cpu/a/b/c": 4.0, "h100-emulated/a/b/c": 0.5}

    assert estimate_s(["cpu/x/b/c"], {}) == A_GUESS_S
    assert estimate_s(["cpu/x/b/c", "cpu/a/b/c"], known) == 8.0
    assert estimate_s(["h100-emulated/x/b/c"], {}) == AN_EMULATED_GUESS_S + HOST_BOOT_S


def test_each_card_and_build_starts_a_host_once() -> None:
    ids = [f"{card}-emulated/{model}/auto/v" for card in ("h100", "b200") for model in "xyz"]

    assert estimate_s(ids, dict.fromkeys(ids, 1.0)) == 6 + 2 * HOST_BOOT_S
