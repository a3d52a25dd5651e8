"""A node that fails one cell after the other for reasons of its own."""

from orchestrator.running.quarantine import TOO_OFTEN, Quarantine


def failed(quarantine: Quarantine, *cells: str) -> list[bool]:
    return [quarantine.note("node-7", cell, is_the_nodes=True) for cell in cells]


def test_it_is_left_alone_after_too_many_cells_in_a_row_and_that_is_said_once() -> None:
    assert failed(Quarantine(), "a", "b", "c", "d") == [False] * (TOO_OFTEN - 1) + [True, False]


def test_one_that_is_well_clears_it() -> None:
    quarantine = Quarantine()
    failed(quarantine, "a", "b")
    quarantine.note("node-7", "c", is_the_nodes=False)

    assert failed(quarantine, "d", "e") == [False, False]


def test_one_cell_alone_may_be_the_cause_itself() -> None:
    assert not any(failed(Quarantine(), *["a"] * 9))
