"""Which directory a run gets, and when an earlier run goes on."""

import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from jobs.contract.builds import Patch
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Expectation
from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded.judge import Verdict
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.kept import run_directory
from orchestrator.kept.run_directory import Asked, claimed, find
from tests.builders import H100, a_cell, a_record

DAY = date(2026, 12, 2)


def asked(*cells: Cell) -> Asked:
    return Asked(suite="demo", command=("suite=demo",), gate=Gate(), cells=cells or (a_cell(),))


def test_a_run_is_named_by_day_and_suite(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (run, resumed):
        assert (run.path.name, resumed) == ("2026-12-02-demo", False)
        assert run.asked() == asked()


def test_a_run_with_cells_that_lack_a_verdict_goes_on(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (first, _):
        pass

    with claimed(tmp_path, asked(), today=DAY) as (second, resumed):
        assert (second.path, resumed) == (first.path, True)


def test_a_run_that_is_complete_is_left_alone(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (first, _):
        first.records.append(a_record(a_cell().id))

    with claimed(tmp_path, asked(), today=DAY) as (second, resumed):
        assert (second.path.name, resumed) == ("2026-12-02-demo-2", False)


def test_a_cell_that_was_not_run_leaves_its_run_unfinished(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (first, _):
        first.records.append(a_record(a_cell().id, Verdict.NOT_RUN))

    with claimed(tmp_path, asked(), today=DAY) as (second, resumed):
        assert (second.path, resumed) == (first.path, True)


def test_a_run_that_asked_for_other_cells_is_left_alone(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY):
        pass

    with claimed(tmp_path, asked(a_cell("cpu/other/auto/v0_32")), today=DAY) as (_, resumed):
        assert not resumed


def test_a_run_goes_on_although_a_cell_is_described_in_another_way(tmp_path: Path) -> None:
    changed = a_cell(engine_args={"max_model_len": 64})
    with claimed(tmp_path, asked(), today=DAY) as (first, _):
        pass

    with claimed(tmp_path, asked(changed), today=DAY) as (second, resumed):
        assert (second.path, resumed) == (first.path, True)
        assert second.asked().cells == (changed,)


def test_the_newest_run_is_the_one_that_began_last_whatever_the_clock_said(tmp_path: Path) -> None:
    for day in (DAY, date(2026, 11, 30), date(2026, 12, 1)):
        with claimed(tmp_path, asked(), today=day, resume=False) as (run, _):
            (run.path / "run.json").touch()
    os.utime(tmp_path / "2026-11-30-demo" / "run.json", (2e9, 2e9))

    assert find("latest", tmp_path).path.name == "2026-12-01-demo"


def test_a_run_that_goes_on_is_the_newest_again(tmp_path: Path) -> None:
    other = asked(a_cell("cpu/other/auto/v0_32"))
    with claimed(tmp_path, asked(), today=DAY) as (first, _), claimed(tmp_path, other, today=DAY):
        pass

    with claimed(tmp_path, asked(), today=DAY):
        assert find("latest", tmp_path).path == first.path


def test_a_suite_whose_name_begins_alike_is_another_suite(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (run, _):
        run.path.rename(tmp_path / "2026-12-02-demo_of_more")

    assert run_directory.newest_first(tmp_path, "demo") == []


def test_two_runs_at_once_get_a_directory_each(tmp_path: Path) -> None:
    with (
        claimed(tmp_path, asked(), today=DAY) as (one, _),
        claimed(tmp_path, asked(), today=DAY) as (other, resumed),
    ):
        assert not resumed
        assert one.path != other.path


def test_a_mistake_of_the_user_leaves_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError), claimed(tmp_path, asked(), today=DAY):
        raise ConfigError("a patch does not apply")

    assert [*tmp_path.iterdir()] == []


def test_a_mistake_leaves_a_resumed_run_as_it_was(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (run, _):
        pass

    with pytest.raises(ConfigError), claimed(tmp_path, asked(), today=DAY):
        raise ConfigError("a patch does not apply")

    assert run.path.is_dir()


def test_a_folder_that_cannot_be_made_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")

    with (
        pytest.raises(ClusterError, match="Choose another place with runs=FOLDER"),
        claimed(tmp_path / "runs", asked(), today=DAY),
    ):
        pass


def test_a_run_is_found_by_path_by_name_and_as_the_latest(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (run, _):
        pass

    for name in (str(run.path), run.path.name, "latest"):
        assert find(name, tmp_path).path == run.path


def test_a_run_that_does_not_exist_is_said_with_those_that_do(tmp_path: Path) -> None:
    with claimed(tmp_path, asked(), today=DAY):
        pass

    with pytest.raises(ConfigError, match=r"there is no run nope; .*: 2026-12-02-demo"):
        run_directory.find("nope", tmp_path)


def test_a_run_that_goes_on_is_judged_by_the_gate_of_today(tmp_path: Path) -> None:
    """Yesterday's waivers must not let today's release ship."""
    waiver = Waiver(cells="*", category="timeout", reason="known", owner="me")
    lenient = replace(asked(), gate=Gate(waivers=(waiver,)))
    with claimed(tmp_path, lenient, today=DAY):
        pass

    with claimed(tmp_path, asked(), today=DAY) as (run, resumed):
        assert resumed
        assert run.asked().gate == Gate()


@pytest.mark.parametrize("text", ["", "{", '{"run_version": 99}'])
def test_a_damaged_run_is_said_in_a_sentence(tmp_path: Path, text: str) -> None:
    with claimed(tmp_path, asked(), today=DAY) as (run, _):
        pass
    (run.path / "run.json").write_text(text)

    with pytest.raises(ClusterError, match="another version of vllm-matrix"):
        run.asked()
    with claimed(tmp_path, asked(), today=DAY) as (_, resumed):
        assert not resumed


@pytest.mark.parametrize(
    "value", ["nvidia", "generate", "config", "refused", "llama/auto", "v0_32"]
)
def test_a_secret_that_has_a_word_of_ours_spoils_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setitem(os.environ, "NGC_KEY", value)
    cell = a_cell(hardware=H100, expect=Expectation(outcome=("refused",)))

    with claimed(tmp_path, asked(cell), today=DAY) as (run, _):
        assert run.asked() == asked(cell)


def test_a_patch_is_kept_as_it_is_but_for_the_secrets_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "NGC_KEY", "planted-value")
    text = "+    stride_q_token=q.stride(0), a=planted-value\n"
    build = replace(a_cell().build, patches=(Patch(name="a.diff", text=text),))

    with claimed(tmp_path, asked(replace(a_cell(), build=build)), today=DAY) as (run, _):
        [patch] = run.asked().cells[0].build.patches

    assert patch.text == text.replace("planted-value", "***")
