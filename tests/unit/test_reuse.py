"""What a run takes over from earlier ones, what it runs, and why. The cluster is a stand-in."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from jobs.contract.attempts import Exit
from orchestrator.__main__ import answer
from orchestrator.asked.compose import compose
from orchestrator.asked.config import Config
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.run import validate
from orchestrator.running.on_ray import cluster as ray_cluster
from tests.builders import a_failed_report, an_attempt
from tests.fakes import LOST_NODE, FakeCluster, SilentProgress
from tests.unit import fake_vllm

WORDS = ["hardware=[cpu]", "model=[llama,gemma3]", "backend=[auto]", "build=[v0_32]"]
LLAMA, GEMMA = "cpu/llama/auto/v0_32", "cpu/gemma3/auto/v0_32"
REFUSED = an_attempt(a_failed_report("Unknown attention backend: 'X'"))
KILLED = an_attempt(None, exit=Exit(signal=9))
EXPECTED = "suite.expectations=[{cells: '*/gemma3/*', expect: {outcome: [refused]}}]"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Runs:
    """Runs in the current folder, and what they said."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.said: list[str] = []

    def run(self, words: Sequence[str] = WORDS) -> RunDirectory:
        self.cluster.submitted.clear()
        self.cluster.provisioned.clear()
        progress = SilentProgress()
        done = validate(_composed(*words), words, self.cluster, progress)
        self.said = progress.lines
        return done

    def stopped(self, words: Sequence[str] = WORDS) -> RunDirectory:
        """A run in which gemma3 got no verdict."""
        self.cluster.script[GEMMA] = [LOST_NODE, LOST_NODE]
        return self.run(words)


@cache
def _composed(*words: str) -> list[Config]:
    return compose(words)


@pytest.fixture
def runs() -> Runs:
    return Runs()


def latest(run: RunDirectory) -> dict[str, Record]:
    return {record.cell_id: record for record in run.records}


def test_a_finished_run_is_the_answer_to_the_same_question(runs: Runs) -> None:
    first = runs.run()
    before = (first.path / "records.jsonl").read_bytes()

    second = runs.run()

    assert second.path == first.path
    assert (second.path / "records.jsonl").read_bytes() == before
    assert runs.cluster.submitted == runs.cluster.provisioned == []
    assert "so every verdict is kept" in runs.said[0]
    assert "resume=false" in runs.said[1]


def test_all_of_it_is_run_anew_when_asked(runs: Runs) -> None:
    first = runs.run()

    second = runs.run([*WORDS, "resume=false"])

    assert second.path != first.path
    assert sorted(runs.cluster.submitted) == [GEMMA, LLAMA]


def test_a_changed_model_runs_its_cells_and_no_others(runs: Runs) -> None:
    first = runs.run()

    second = runs.run([*WORDS, "model.gemma3.engine_args.max_num_seqs=2"])

    assert runs.cluster.submitted == [GEMMA]
    assert "1 cell runs: model changed" in runs.said
    kept = latest(second)[LLAMA]
    assert kept.kept_from == first.path.name
    assert kept.attempt == latest(first)[LLAMA].attempt


def test_a_changed_patch_runs_the_cells_of_its_build(runs: Runs, tmp_path: Path) -> None:
    patch = tmp_path / "own.diff"
    words = [*WORDS, f"build.v0_32.patches=[{patch}]"]
    patch.write_text("one")
    runs.run(words)

    patch.write_text("two")
    runs.run(words)

    assert "2 cells run: build (patch own.diff) changed" in runs.said


@pytest.mark.parametrize("setting", ["isolation=cold", "suite.check=init"])
def test_another_setting_runs_every_cell(runs: Runs, setting: str) -> None:
    runs.run()

    runs.run([*WORDS, setting])

    assert (
        f"2 cells run: {setting.split('=', maxsplit=1)[0].removeprefix('suite.')} changed"
        in runs.said
    )


def test_a_checkout_is_the_same_on_a_cluster_and_compared_before_that_is_reached(
    runs: Runs, tmp_path: Path
) -> None:
    checkout = fake_vllm.write(tmp_path / "checkout", fake_vllm.FILES)
    words = [*WORDS, f"build.v0_32.checkout={checkout}", "cluster.address=10.0.0.1:6379"]
    runs.run(words)

    runs.run(words)
    assert runs.cluster.submitted == runs.cluster.provisioned == []

    (checkout / "vllm" / "envs.py").write_text("RUNNER = 'v9'\n")
    runs.run(words)
    assert "2 cells run: build changed" in runs.said


def test_cells_that_are_new_to_the_suite_run_alone(runs: Runs) -> None:
    runs.run()

    runs.run([*WORDS, "model=[llama,gemma3,mixtral]"])

    assert runs.cluster.submitted == ["cpu/mixtral/auto/v0_32"]
    assert "1 cell runs: no verdict yet" in runs.said


@pytest.mark.parametrize("setting", ["deadline_s=999", "attempts=5", "model.llama.memory_gib=3"])
def test_what_decides_nothing_runs_nothing(runs: Runs, setting: str) -> None:
    runs.run()

    runs.run([*WORDS, setting])

    assert runs.cluster.submitted == []


def test_a_changed_expectation_counts_at_once_and_runs_nothing(runs: Runs) -> None:
    runs.cluster.script[GEMMA] = [REFUSED]
    first = runs.run()
    assert latest(first)[GEMMA].verdict is Verdict.FAILED

    second = runs.run([*WORDS, EXPECTED])

    assert runs.cluster.submitted == runs.cluster.provisioned == []
    assert latest(second)[GEMMA].verdict is Verdict.PASSED
    assert latest(first)[GEMMA].verdict is Verdict.FAILED


def test_what_failed_by_bad_luck_runs_again(runs: Runs) -> None:
    runs.cluster.script[GEMMA] = [KILLED, KILLED]
    runs.run()

    second = runs.run()

    assert runs.cluster.submitted == [GEMMA]
    assert "1 cell runs: failed in a way that another try may change" in runs.said
    assert latest(second)[GEMMA].verdict is Verdict.PASSED


def test_what_vllm_refused_is_not_asked_twice(runs: Runs) -> None:
    runs.cluster.script[GEMMA] = [REFUSED]
    runs.run()

    runs.run()

    assert runs.cluster.submitted == []


def test_a_run_that_goes_on_leaves_no_verdict_of_a_cell_that_has_changed(runs: Runs) -> None:
    """It may be stopped once more before the cell's turn comes."""
    first = runs.stopped()
    changed = [*WORDS, "model.llama.engine_args.max_num_seqs=2"]
    runs.cluster.script[LLAMA] = [LOST_NODE, LOST_NODE]

    second = runs.stopped(changed)

    assert second.path == first.path
    assert latest(second)[LLAMA].verdict is Verdict.NOT_RUN
    runs.run(changed)
    assert sorted(runs.cluster.submitted) == [GEMMA, LLAMA]
    assert {record.verdict for record in latest(second).values()} == {Verdict.PASSED}


def test_in_a_run_that_goes_on_what_failed_has_had_its_attempts(runs: Runs) -> None:
    runs.cluster.script[LLAMA] = [KILLED, KILLED]
    runs.stopped()

    done = runs.run()

    assert runs.cluster.submitted == [GEMMA]
    assert [record.cell_id for record in done.records].count(LLAMA) == 1


def test_a_cell_whose_record_is_damaged_runs_again(runs: Runs) -> None:
    first = runs.run()
    lines = first.records.path.read_text().splitlines()
    damaged = [line[:-200] if line.startswith(f'{{"cell_id":"{GEMMA}') else line for line in lines]
    first.records.path.write_text("\n".join(damaged) + "\n")

    second = runs.run()

    assert second.path == first.path
    assert runs.cluster.submitted == [GEMMA]
    assert {record.verdict for record in latest(second).values()} == {Verdict.PASSED}


def test_a_run_whose_question_is_damaged_still_gives_its_verdicts(runs: Runs) -> None:
    first = runs.run()
    (first.path / "run.json").write_text("{")

    second = runs.run()

    assert second.path != first.path
    assert runs.cluster.submitted == runs.cluster.provisioned == []
    assert {record.verdict for record in latest(second).values()} == {Verdict.PASSED}


def test_a_verdict_that_was_kept_names_the_run_that_reached_it_first(runs: Runs) -> None:
    first = runs.run()
    runs.run([*WORDS, "model.gemma3.engine_args.max_num_seqs=2"])

    third = runs.run([*WORDS, "model.gemma3.engine_args.max_num_seqs=3"])

    assert latest(third)[LLAMA].kept_from == first.path.name


def test_the_plan_says_what_runs_and_why(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "RayCluster", runs.cluster)
    first = runs.run()
    changed = [*WORDS, "model.gemma3.dtype=bfloat16", "hardware=[cpu,h200]"]

    assert answer(["plan", *changed]) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert f"passed, kept from {first.path.name}" in shown
    assert "model changed" in shown
    assert "no node with h200" in shown
    assert "1 keep their verdict, 1 run, 2 can't" in shown


def test_a_run_whose_records_cannot_be_read_keeps_nothing_and_stops_nobody(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "RayCluster", runs.cluster)
    first = runs.run()
    first.records.path.unlink()
    first.records.path.mkdir()

    assert answer(["plan", *WORDS]) == 0
    assert f"no verdict of {first.path.name} is kept: " in capsys.readouterr().out
    second = runs.run()

    assert second.path != first.path
    assert sorted(runs.cluster.submitted) == [GEMMA, LLAMA]
    assert any(f"no verdict of {first.path.name} is kept: " in line for line in runs.said)


def test_a_plan_that_keeps_nothing_does_not_say_that_there_is_nothing(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "RayCluster", runs.cluster)
    runs.run()

    assert answer(["plan", *WORDS, "model=[llama,mixtral]", "resume=false"]) == 0

    shown = capsys.readouterr().out
    assert "resume=false runs it anew" in shown
    assert "no verdict yet" in shown
