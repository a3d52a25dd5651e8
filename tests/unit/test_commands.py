"""The command line, from words to exit codes, with a stand-in for the cluster."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs.contract.attempts import Exit
from orchestrator.__main__ import answer
from orchestrator.asked.compose import compose
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.reports import write_all
from orchestrator.run import validate
from orchestrator.running.on_ray import cluster as ray_cluster
from tests.builders import a_failed_report, an_attempt
from tests.fakes import LOST_NODE, FakeCluster, SilentProgress

ONE = ["hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]"]
TWO = [*ONE[:1], "model=[llama,gemma3]", *ONE[2:]]
LLAMA, GEMMA = "cpu/llama/auto/v0_32", "cpu/gemma3/auto/v0_32"
BROKEN = an_attempt(
    a_failed_report("CUDA error: an illegal memory access", type_="torch.AcceleratorError")
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster()
    monkeypatch.setattr(ray_cluster, "RayCluster", fake)
    return fake


def run(words: Sequence[str], cluster: FakeCluster) -> RunDirectory:
    done = validate(compose(words), words, cluster, SilentProgress())
    write_all(done)
    return done


def test_a_run_of_healthy_cells_ships(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(ONE) == 0

    assert "gate ships: 1 of 1 cells passed" in capsys.readouterr().out
    assert cluster.closed


def test_a_failed_cell_blocks(cluster: FakeCluster) -> None:
    cluster.script[LLAMA] = [BROKEN, BROKEN]

    assert answer(["run", *ONE]) == 1


def test_a_run_directory_holds_everything(cluster: FakeCluster) -> None:
    run(TWO, cluster)

    [folder] = Path("runs").iterdir()
    data = {"config.yaml", "run.json", "records.jsonl", "summary.json", "junit.xml"}
    assert {*data, "matrix.md", "matrix.html"} <= {file.name for file in folder.iterdir()}
    assert len((folder / "records.jsonl").read_text().splitlines()) == 2


def test_the_same_command_runs_only_what_has_no_verdict_yet(cluster: FakeCluster) -> None:
    cluster.script[GEMMA] = [LOST_NODE, LOST_NODE]
    first = run(TWO, cluster)
    cluster.submitted.clear()

    second = run(TWO, cluster)

    assert second.path == first.path
    assert cluster.submitted == [GEMMA]


def test_resume_can_be_declined(cluster: FakeCluster) -> None:
    cluster.script[LLAMA] = [LOST_NODE, LOST_NODE]
    first = run(ONE, cluster)

    assert run([*ONE, "resume=false"], cluster).path != first.path


def test_a_killed_cells_attempts_leave_one_record(cluster: FakeCluster) -> None:
    killed = an_attempt(None, exit=Exit(signal=9))
    cluster.script[LLAMA] = [killed, killed]

    [record] = run(ONE, cluster).records

    assert record.judgement.category == "worker_killed"


def test_a_multirun_is_one_run(cluster: FakeCluster) -> None:
    run(["-m", "hardware=cpu", "model=llama,gemma3", "backend=auto", "build=v0_32"], cluster)

    assert len([*Path("runs").iterdir()]) == 1
    assert sorted(cluster.submitted) == [GEMMA, LLAMA]


def test_hardware_that_no_node_has_is_not_run_and_blocks(cluster: FakeCluster) -> None:
    assert answer([*ONE, "hardware=[cpu,h200]"]) == 1
    assert cluster.submitted == [LLAMA]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["reprot", "x"], 2, 'there is no command "reprot"'),
        ([*ONE, "model=[lama]"], 2, 'Did you mean "llama"?'),
        (["suite=none"], 3, "there is nothing to run"),
        ([*ONE, "suite.select=['x/*']"], 3, "such as cpu/llama/auto/v0_32"),
        (["report", "nope"], 2, "there is no run nope"),
    ],
)
def test_mistakes_have_a_message_and_an_exit_code_and_leave_nothing(
    cluster: FakeCluster,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    message: str,
) -> None:
    assert answer(words) == code

    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("runs").exists()
    assert not cluster.submitted


def test_a_plan_says_where_cells_go_and_starts_nothing(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(["plan", *ONE, "hardware=[cpu,mi300x]"]) == 0

    shown = capsys.readouterr().out
    assert "1 of 2 cells can run" in shown
    assert "no node with mi300x" in shown
    assert not cluster.submitted


def test_a_plan_says_what_a_budget_leaves_out(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(["plan", *ONE, "budget.max_minutes=0.001"]) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert "1 is left out: the budget of 0.001 minutes is not enough for it" in shown
    assert not cluster.submitted


def test_nodes_shows_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["nodes"]) == 0

    shown = capsys.readouterr().out
    assert platform.node() in shown
    assert "this machine alone" in shown


def test_a_report_is_made_again_from_a_run(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run(ONE, cluster)

    assert answer(["report", "latest", "--format", "json"]) == 0

    assert json.loads(capsys.readouterr().out)["cells"][0]["id"] == LLAMA


def test_the_gate_can_be_asked_again(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.script[LLAMA] = [BROKEN, BROKEN]
    run(ONE, cluster)

    assert answer(["gate", "latest"]) == 1

    assert capsys.readouterr().out.startswith("blocked: 1 failed (cuda_error) of 1 cells")


def test_explain_names_the_nearest_cell(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run(ONE, cluster)

    assert answer(["explain", "latest", "cpu/lama/auto/v0_32"]) == 2

    assert f'Did you mean "{LLAMA}"?' in " ".join(capsys.readouterr().err.split())


def test_explain_shows_the_cell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run(ONE, cluster)

    assert answer(["explain", "latest", LLAMA]) == 0

    assert capsys.readouterr().out.startswith(f"{LLAMA}: passed")
