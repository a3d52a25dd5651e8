"""What earlier runs tell of cells: their time, and their memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.attempts import Exit
from jobs.contract.terms import Check, EngineMode, Isolation
from orchestrator.asked.cells import Cell
from orchestrator.kept import history
from orchestrator.kept.history import A_GUESS_S, MARGIN, History, way
from orchestrator.kept.records import RecordFile
from orchestrator.running.forecast import HOST_BOOT_S
from tests.builders import a_cell, a_record, an_attempt, an_emulated_cell

LLAMA = a_cell("cpu/llama/auto/v0_32")
OTHER = a_cell("cpu/llama/v2/v0_32")


def a_run(runs: Path, name: str, number: int, **attempt: Any) -> None:
    folder = runs / name
    folder.mkdir(parents=True)
    (folder / "run.json").touch()
    (folder / "order").write_text(str(number))
    RecordFile(folder / "records.jsonl").append(
        a_record(LLAMA.id, attempt=an_attempt(**attempt), build=None, parts=LLAMA.parts(""))
    )


def seen_of(memory_mib: dict[str, int], cell: Cell) -> History:
    """Cells, tried as this one is."""
    return History(memory_mib={(each, way(cell)): mib for each, mib in memory_mib.items()})


def test_the_latest_attempt_tells_the_seconds_and_the_largest_the_memory(tmp_path: Path) -> None:
    a_run(tmp_path, "2026-12-01-demo", 2, seconds=4.0, memory_mib=300)
    a_run(tmp_path, "2026-12-02-demo", 1, seconds=9.0, memory_mib=500)

    read = history.read(tmp_path)

    assert read.seconds_of(LLAMA) == 4.0
    assert read.memory_gib([LLAMA]) == {LLAMA.id: 500 * MARGIN / 1024}


def test_what_memory_was_short_for_does_not_tell_how_much_it_needs(tmp_path: Path) -> None:
    a_run(tmp_path, "2026-12-01-demo", 1, memory_mib=300, exit=Exit(signal=9, out_of_memory=True))

    assert history.read(tmp_path).memory_gib([LLAMA]) == {}


def test_a_cell_that_was_never_run_needs_what_its_model_was_seen_to_take() -> None:
    seen = seen_of({LLAMA.id: 1024, "cpu/llama/x/v0_32": 2048, "cpu/big/x/v0_32": 9999}, LLAMA)

    assert seen.memory_gib([LLAMA, OTHER]) == {LLAMA.id: MARGIN, OTHER.id: 2 * MARGIN}


def test_an_emulated_model_says_nothing_of_a_real_one() -> None:
    other = an_emulated_cell("b200-emulated/llama/auto/x")
    seen = seen_of({"h100-emulated/llama/auto/v0_32": 100}, other)

    assert seen.memory_gib([replace(LLAMA, check=other.check)]) == {}
    assert seen.memory_gib([other]) == {other.id: 100 * MARGIN / 1024}


@pytest.mark.parametrize("other", [{"isolation": Isolation.COLD}, {"check": Check.IMPORT}])
def test_what_a_cell_took_in_another_way_says_nothing(tmp_path: Path, other: Any) -> None:
    a_run(tmp_path, "2026-12-01-demo", 1, seconds=40.0, memory_mib=300)
    read, cell = history.read(tmp_path), replace(LLAMA, **other)

    assert read.seconds_of(cell) is None
    assert read.work([cell])[cell.id].seconds == A_GUESS_S[EngineMode.REAL]
    assert read.memory_gib([cell]) == {}


@pytest.mark.parametrize(
    ("cell", "mode"), [(LLAMA, EngineMode.REAL), (an_emulated_cell(), EngineMode.EMULATED)]
)
def test_cells_that_were_never_run_are_guessed_by_their_engine_mode(
    cell: Cell, mode: EngineMode
) -> None:
    assert History().work([cell])[cell.id].seconds == A_GUESS_S[mode]
    assert History().work([cell])[cell.id].boot_s == HOST_BOOT_S[mode]


def test_a_cell_with_an_interpreter_of_its_own_shares_no_host() -> None:
    cold = replace(LLAMA, isolation=Isolation.COLD)

    assert History().work([cold])[LLAMA.id].host is None
    assert History().work([LLAMA])[LLAMA.id].host is not None
