"""Which cells run, by what their nodes and probes leave on disk."""

import os
import time
from pathlib import Path

import pytest

from jobs.contract.terms import Phase
from jobs.node.cell_files import CellFiles
from orchestrator.running import underway
from orchestrator.running.underway import RunningCells
from tests.unit.test_progress import Clock

CELL = "cpu/llama/auto/v0_32"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(underway, "time", clock)
    return clock


def test_a_cell_runs_once_a_node_has_begun_with_it(tmp_path: Path, clock: Clock) -> None:
    cells, submitted = RunningCells(), {CELL: str(tmp_path)}

    assert cells.look(submitted) == {}
    (tmp_path / "request.json").touch()
    clock.now = 5.0
    cells.look(submitted)
    clock.now = 9.0
    [(cell_id, cell)] = cells.look(submitted).items()

    assert (cell_id, cell.age_s, cell.phase, cell.forked_after_s) == (CELL, 4.0, None, None)


def test_when_it_got_a_process_is_kept_and_its_phase_is_of_now(
    tmp_path: Path, clock: Clock
) -> None:
    cells, submitted = RunningCells(), {CELL: str(tmp_path)}
    (tmp_path / "request.json").touch()
    cells.look(submitted)
    (tmp_path / "phase.json").write_text('{"phase": "load"}')
    clock.now = 3.0
    cells.look(submitted)
    (tmp_path / "phase.json").write_text('{"phase": "ready"}')
    clock.now = 8.0
    [cell] = cells.look(submitted).values()

    assert (cell.age_s, cell.phase, cell.forked_after_s) == (8.0, Phase.READY, 3.0)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_whatever_the_clock_said_what_waits_does_not_run_and_what_a_node_began_with_does(
    tmp_path: Path, jump_s: float
) -> None:
    files, submitted = CellFiles(folder=tmp_path), {CELL: str(tmp_path)}
    files.request.touch()
    os.utime(files.request, (time.time() + jump_s,) * 2)
    files.phase.write_text('{"phase": "load"}')

    files.withdraw_request()
    assert RunningCells().look(submitted) == {}

    files.request.touch()
    os.utime(files.request, (time.time() + jump_s,) * 2)
    assert RunningCells().look(submitted).keys() == {CELL}


def test_a_cell_that_has_ended_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "request.json").touch()
    cells = RunningCells()
    cells.look({CELL: str(tmp_path)})

    assert cells.look({}) == {}
