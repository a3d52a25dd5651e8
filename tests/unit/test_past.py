"""All runs of a folder, asked with words and with SQL."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.seen import ProbeReport
from orchestrator.__main__ import answer
from orchestrator.asked.cells import Cell
from orchestrator.asked.policies import Gate
from orchestrator.commands.history import TABLES
from orchestrator.concluded.judge import Verdict, judge
from orchestrator.concluded.record import Record
from orchestrator.errors import ConfigError
from orchestrator.kept import past
from orchestrator.kept.database import NO_QUERY, Database, tables
from orchestrator.kept.run_directory import Asked, claimed
from tests.builders import a_build, a_cell, a_failed_report, a_report, an_attempt, groups

DOCS = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
BAD = a_failed_report("CUDA error: an illegal memory access", type_="torch.AcceleratorError")
LLAMA = "cpu/llama/auto"


def a_run(runs: Path, *told: tuple[Cell, ProbeReport | None], day: int = 1, **more: Any) -> Path:
    """None: the cell has no record."""
    cells = tuple(dict.fromkeys(cell.id for cell, _ in told))
    by_id = {cell.id: cell for cell, _ in told}
    asked = Asked(
        suite="demo", command=("suite=demo",), gate=Gate(), cells=tuple(by_id[i] for i in cells)
    )
    with claimed(runs, asked, today=date(2026, 12, day), resume=False) as (run, _):
        for cell, report in told:
            if report is not None:
                run.records.append(
                    a_record_of(cell, report, at=f"2026-12-0{day}T10:00:00+00:00", **more)
                )
    return run.path


def a_record_of(cell: Cell, report: ProbeReport, **more: Any) -> Record:
    version = cell.id.rsplit("/v", 1)[-1]
    build, attempt = a_build(vllm_version=version), an_attempt(report, cell_id=cell.id)
    usual: dict[str, Any] = {"build": build, "attempt": attempt, "digest": f"d {cell.id}"}
    return Record(cell_id=cell.id, judgement=judge(cell, build, attempt), **usual | more)


def ids(runs: Path, glob: str) -> list[tuple[str, str]]:
    return [(each.run, each.cell_id) for each in past.entries(past.runs_in(runs), glob)[0]]


def ask(runs: Path, query: str) -> Sequence[tuple[Any, ...]]:
    return Database(past.runs_in(runs)).ask(query).rows


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only to be read. Three runs of two releases: another backend in the second, and a cell that is flaky."""
    old, new = a_cell(f"{LLAMA}/v0.9.0"), a_cell(f"{LLAMA}/v0.10.0")
    dropped = a_cell("cpu/llama/triton/v0.10.0", target=a_cell().backend.target)
    asks = replace(dropped.backend.target, attention_backend="TRITON_ATTN")
    dropped = replace(dropped, backend=replace(dropped.backend, target=asks))
    gemma = a_cell("cpu/gemma/auto/v0.10.0", engine_args={"max_model_len": 64})
    folder = tmp_path_factory.mktemp("history") / "runs"
    a_run(folder, (old, a_report(target=groups("A"))))
    a_run(folder, (new, a_report(target=groups("B"))), (dropped, a_report()), day=2)
    a_run(folder, (new, BAD), (gemma, None), day=3)
    return folder


@pytest.fixture
def own_runs(runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs, tmp_path / "runs"))


def test_a_cell_is_found_with_its_build_without_it_and_by_a_glob(runs: Path) -> None:
    assert ids(runs, f"{LLAMA}/v0.9.0") == [("2026-12-01-demo", f"{LLAMA}/v0.9.0")]
    assert [cell for _, cell in ids(runs, LLAMA)] == [
        *(f"{LLAMA}/v0.9.0", f"{LLAMA}/v0.10.0", f"{LLAMA}/v0.10.0")
    ]
    assert len(ids(runs, "*/v0.10.0")) == 4


def test_a_cell_that_had_another_name_is_found_by_what_it_asks(own_runs: Path) -> None:
    renamed = a_cell("cpu/llama_3/none/v0.11.0")
    a_run(own_runs, (renamed, a_report()), day=4)

    assert ("2026-12-04-demo", renamed.id) in ids(own_runs, LLAMA)
    assert ("2026-12-04-demo", renamed.id) not in ids(own_runs, f"{LLAMA}/v0.9.0")


def test_a_cell_that_nobody_ran_is_a_mistake_with_the_nearest_name(runs: Path) -> None:
    with pytest.raises(ConfigError, match=f'Did you mean "{LLAMA}"'):
        ids(runs, "cpu/lama/auto")


@pytest.mark.parametrize("make", [True, False])
def test_a_folder_without_runs_is_a_mistake(tmp_path: Path, make: bool) -> None:
    if make:
        (tmp_path / "runs").mkdir()
    with pytest.raises(ConfigError, match="name the folder of your runs with --runs"):
        past.runs_in(tmp_path / "runs")


def test_a_cell_without_a_record_was_not_run(runs: Path) -> None:
    asked = "SELECT verdict, reasons, recorded_at FROM cells WHERE model = 'gemma'"

    assert ask(runs, asked) == (("not run", ["there is no record of it"], None),)


def test_a_run_that_is_being_written_is_read_up_to_its_last_whole_line(own_runs: Path) -> None:
    file = next(own_runs.glob("2026-12-03*")) / "records.jsonl"
    file.write_bytes(file.read_bytes() + file.read_bytes()[:400])

    entries, troubles = past.entries(past.runs_in(own_runs), LLAMA)

    assert (len(entries), troubles) == (3, [])


def test_what_another_version_wrote_is_said_and_the_rest_is_read(own_runs: Path) -> None:
    first, second, _ = sorted(own_runs.iterdir())
    line = json.loads((second / "records.jsonl").read_text().splitlines()[0])
    newer = json.dumps(line | {"record_version": 2, "cell_id": f"{LLAMA}/v0.10.0"})
    (second / "records.jsonl").write_text(newer + "\n")
    (first / "run.json").write_text('{"run_version": 7}')

    entries, troubles = past.entries(past.runs_in(own_runs), LLAMA)

    told = [(each.run, each.verdict) for each in entries]
    assert told == [
        ("2026-12-01-demo", Verdict.PASSED),
        ("2026-12-02-demo", Verdict.NOT_RUN),
        ("2026-12-03-demo", Verdict.FAILED),
    ]
    assert len(troubles) == 2
    assert "run.json can't be read, or another version of vllm-matrix wrote it" in troubles[0]
    assert "records.jsonl is no record of this version of vllm-matrix" in troubles[1]


def test_a_record_that_was_replaced_is_no_last_word_but_is_there(tmp_path: Path) -> None:
    cell = a_cell(f"{LLAMA}/v0.10.0")
    a_run(tmp_path, (cell, BAD), (cell, a_report()))

    assert ask(tmp_path, "SELECT verdict FROM cells") == (("passed",),)
    assert ask(tmp_path, "SELECT verdict, is_last FROM records") == (
        ("failed", False),
        ("passed", True),
    )


def test_requests_and_runs_are_tables(runs: Path) -> None:
    dropped = "SELECT cell, field, asked, got FROM requests WHERE verdict = 'dropped'"

    assert ask(runs, dropped) == (
        ("cpu/llama/triton/v0.10.0", "target.attention_backend", "TRITON_ATTN", "CPU_ATTN"),
    )
    assert ask(runs, "SELECT run, cells, passed, failed, not_run FROM runs ORDER BY run") == (
        ("2026-12-01-demo", 1, 1, 0, 0),
        ("2026-12-02-demo", 2, 1, 1, 0),
        ("2026-12-03-demo", 2, 0, 1, 1),
    )


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("DROP TABLE records", NO_QUERY),
        ("SELECT 1; SELECT 2", NO_QUERY),
        ("COPY cells TO '/tmp/stolen.csv'", NO_QUERY),
        ("SET enable_external_access = true", NO_QUERY),
        ("FROM read_text('/etc/passwd')", "file system operations are disabled"),
        ("FROM '/etc/passwd'", "can't be answered"),
        ("FROM runs_folder", "does not exist"),
        ("SELEC 1", "syntax error"),
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(runs: Path, query: str, why: str) -> None:
    runs_folder = [str(runs)]  # which DuckDB would find by its name

    with pytest.raises(ConfigError, match=re.escape(why)):
        ask(runs, query)
    assert runs_folder


QUERIES = re.findall(r"```sql\n(.*?)```", DOCS, re.DOTALL)


def test_the_docs_have_five_queries() -> None:
    assert len(QUERIES) == 5


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_the_docs_has_an_answer(runs: Path, query: str) -> None:
    assert ask(runs, query)


def test_the_query_for_releases_names_the_one_that_changed_the_backend(runs: Path) -> None:
    [query] = [each for each in QUERIES if "lag(" in each]

    assert ask(runs, query) == ((LLAMA, "0.9.0", "0.10.0", "A", "B"),)


def test_the_docs_name_every_table_and_column() -> None:
    described = {
        table: [column for row in rows for column in re.findall(r"`(\w+)`", row.split("|")[1])]
        for table, rows in _tables_of_the_docs()
    }
    expected = {name: [*columns] for name, columns in tables().items()}
    assert "`records`: every record, with `is_last` beside the columns of `cells`." in DOCS
    del expected["records"]
    assert {name: sorted(columns) for name, columns in described.items()} == {
        name: sorted(columns) for name, columns in expected.items()
    }
    assert {*TABLES} == {*tables()}


def _tables_of_the_docs() -> list[tuple[str, list[str]]]:
    parts = re.findall(
        r"^`(\w+)`: [^\n]*\n\n\| column[^\n]*\n\|---\|---\|\n((?:\|.*\n)+)", DOCS, re.MULTILINE
    )
    return [(name, rows.splitlines()) for name, rows in parts]


def test_the_command_shows_tables_and_answers(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs.parent)

    assert answer(["history", LLAMA]) == 0

    said = capsys.readouterr().out
    assert "last passed 2026-12-02 10:00 with v0.10.0, vLLM 0.10.0 (2026-12-02-demo)" in said
    assert "changed 0.9.0 → 0.10.0: outcome: runs → fails (cuda_error)" in said
    assert "flaky with v0.10.0: 1 passed, 1 failed, from 2026-12-02 10:00 to 2026-12-03" in said


def test_the_command_answers_programs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--runs", str(runs), "--format", "json"]

    assert answer(["history", LLAMA, *words]) == 0
    [question] = json.loads(capsys.readouterr().out)["questions"]
    assert [entry["verdict"] for entry in question["entries"]] == ["passed", "passed", "failed"]
    assert question["last_passed"]["run"] == "2026-12-02-demo"

    query = "SELECT max(recorded_at) AS latest, list(DISTINCT suite) AS suites FROM cells JOIN runs USING (run)"
    assert answer(["history", "--sql", query, *words]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"latest": "2026-12-03T10:00:00", "suites": ["demo"]}
    ]


@pytest.mark.parametrize("words", [[], ["cpu/*", "--sql", "FROM cells"]])
def test_the_command_takes_cells_or_a_query(words: list[str]) -> None:
    assert answer(["history", *words]) == 2


def test_what_a_record_quotes_gives_no_order_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = a_cell(f"{LLAMA}/v0.10.0")
    hostile = a_failed_report("\x1b[2J[bold]a ValueError[/bold] :tada:", type_="X")
    a_run(tmp_path, (cell, hostile))
    words = ["--runs", str(tmp_path), "--sql", 'SELECT reasons[1] AS "[red]" FROM cells']

    assert answer(["history", *words]) == 0

    said = capsys.readouterr().out
    assert "[bold]a ValueError[/bold] :tada:" in said
    assert "[red]" in said
    assert "\x1b[2J" not in said
