"""By which names runs and builds are compared, and which of them are none."""

from pathlib import Path

import pytest

from orchestrator.errors import ConfigError
from orchestrator.kept import sides
from tests.builders import H100, a_cell, a_report, an_emulated_cell
from tests.unit.kept_runs import a_run

OLD, NEW = a_cell("cpu/llama/auto/v0_31"), a_cell("cpu/llama/auto/v0_32")
FINE = a_report()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def mistakes(*names: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        sides.load(names)
    return raised.value.mistakes


@pytest.mark.parametrize(
    ("name", "called", "cells"),
    [
        ("2026-12-02-both", "2026-12-02-both", [OLD.id, NEW.id]),
        ("runs/2026-12-02-both", "2026-12-02-both", [OLD.id, NEW.id]),
        ("latest", "2026-12-02-both", [OLD.id, NEW.id]),
        ("latest:v0_32", "2026-12-02-both:v0_32", [NEW.id]),
        ("runs/2026-12-02-both:v0_31", "2026-12-02-both:v0_31", [OLD.id]),
    ],
)
def test_a_side_is_a_run_or_a_build_of_one(name: str, called: str, cells: list[str]) -> None:
    a_run("2026-12-02-both", [(OLD, FINE), (NEW, FINE)])

    [side] = sides.load([name])

    assert side.name == called
    assert [cell.id for cell in side.matrix.cells] == cells
    assert side.matrix.record(side.matrix.cells[0]) is not None


def test_what_is_wrong_with_either_is_said_in_one_message() -> None:
    a_run("2026-12-02-both", [(OLD, FINE), (NEW, FINE)])

    no_run, no_build = mistakes("nope", "latest:v0_23")

    assert no_run == "nope: there is no run nope; runs in runs: 2026-12-02-both"
    assert no_build == (
        "latest:v0_23: 2026-12-02-both has no build v0_23; it has: v0_31, v0_32."
        ' Did you mean "v0_32"?'
    )


def test_a_run_that_cannot_be_read_says_so() -> None:
    run = a_run("2026-12-02-old", [(OLD, FINE)])
    run.write("run.json", '{"suite": "old", "run_version": 0}')

    [mistake] = mistakes("latest")

    assert mistake.startswith(
        "latest: runs/2026-12-02-old/run.json can't be read, or another version of vllm-matrix"
    )


def test_a_run_of_before_there_were_policies_can_be_compared() -> None:
    run = a_run("2026-12-02-old", [(OLD, FINE)])
    text = (run.path / "run.json").read_text()
    start, end = text.index('"gate": {'), text.index(' "cells": [')
    run.write("run.json", f'{text[:start]}"gate": {{"waivers": []}},\n{text[end:]}')

    [side] = sides.load(["latest"])

    assert side.matrix.cells == (OLD,)


# The baseline of a run


def test_the_previous_run_is_of_the_same_suite_and_older() -> None:
    a_run("2026-12-01-demo", [(OLD, FINE)])
    a_run("2026-12-01-other", [(OLD, FINE)])
    middle = a_run("2026-12-02-demo", [(OLD, FINE)])
    a_run("2026-12-03-demo", [(OLD, FINE)])

    assert sides.baseline(middle, "previous").name == "2026-12-01-demo"
    assert sides.baseline(middle, "previous:v0_31").name == "2026-12-01-demo:v0_31"


def test_a_run_in_which_no_cell_was_tried_is_no_previous_one() -> None:
    a_run("2026-12-01-demo", [(OLD, FINE)])
    a_run("2026-12-02-demo", [(OLD, None)])
    run = a_run("2026-12-03-demo", [(OLD, FINE)])

    assert sides.baseline(run, "previous").name == "2026-12-01-demo"


def test_the_run_that_shipped_is_the_latest_whose_gate_said_so() -> None:
    a_run("2026-11-30-demo", [(OLD, FINE)], shipped=True)
    a_run("2026-12-01-demo", [(OLD, FINE)], shipped=True)
    a_run("2026-12-02-demo", [(OLD, FINE)], shipped=False)
    a_run("2026-12-02-demo-2", [(OLD, FINE)])
    run = a_run("2026-12-03-demo", [(OLD, FINE)], shipped=True)

    assert sides.baseline(run, "shipped").name == "2026-12-01-demo"


def test_the_first_run_has_nothing_before_it() -> None:
    run = a_run("2026-12-03-demo", [(OLD, FINE)])

    for word in ("previous", "shipped"):
        side = sides.baseline(run, word)
        assert (side.name, side.matrix.cells) == (f"no {word} run", ())


def test_a_baseline_by_name_is_looked_for_beside_the_run() -> None:
    elsewhere = Path("elsewhere")
    a_run("2026-12-01-demo", [(OLD, FINE)], runs=elsewhere)
    run = a_run("2026-12-02-demo", [(OLD, FINE)], runs=elsewhere)

    assert sides.baseline(run, "2026-12-01-demo").name == "2026-12-01-demo"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", "gate.baseline: there is no run nope; runs in runs: 2026-12-01-demo"),
        ("latest", "gate.baseline: latest would be the run itself; previous is the one before it"),
        ("2026-12-01-demo:x", "gate.baseline: 2026-12-01-demo has no build x; it has: v0_31."),
    ],
)
def test_a_run_does_not_begin_without_the_baseline_that_it_wants(name: str, said: str) -> None:
    a_run("2026-12-01-demo", [(OLD, FINE)])

    with pytest.raises(ConfigError) as raised:
        sides.check(name, Path("runs"))

    assert raised.value.mistakes == (said,)


@pytest.mark.parametrize("name", [None, "previous", "shipped:v0_31", "2026-12-01-demo"])
def test_a_baseline_that_is_there_or_may_be_is_fine(name: str | None) -> None:
    a_run("2026-12-01-demo", [(OLD, FINE)])

    sides.check(name, Path("runs"))


def test_predictions_are_not_compared_with_what_real_cards_did() -> None:
    a_run("2026-12-01-emulated", [(an_emulated_cell(), FINE)])
    a_run("2026-12-01-real", [(a_cell("h100/llama/auto/v0_32_gpu", hardware=H100), FINE)])

    base, candidate = sides.load(["2026-12-01-emulated", "2026-12-01-real"])

    assert sides.why_nothing_in_common(base, candidate).startswith(
        "2026-12-01-real asks nothing that 2026-12-01-emulated does: the engines of"
        " 2026-12-01-emulated are emulated, those of 2026-12-01-real real"
    )
