"""records.jsonl: whole lines or none."""

import resource
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from jobs.secrets import SHORTEST, redactor
from orchestrator.asked.config import FieldName, RequestVerdict
from orchestrator.asked.policies import Gate
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.requests import Request
from orchestrator.errors import ClusterError
from orchestrator.kept.records import RecordFile, words
from orchestrator.kept.run_directory import Asked
from tests.builders import a_build, a_cell, a_record, a_report, an_attempt


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    records = [
        a_record("cpu/a/b/c", build=a_build(), attempt=an_attempt(a_report())),
        a_record("cpu/d/e/f", Verdict.FAILED, "timeout"),
    ]

    for record in records:
        file.append(record)

    assert [*file] == records


OURS = sorted(word for word in words() if len(word) >= SHORTEST)


@pytest.mark.parametrize("value", [*OURS, "llama/auto", "gemma3-1b"])
def test_a_secret_that_has_a_word_of_ours_spoils_no_record(tmp_path: Path, value: str) -> None:
    cell = a_cell("cpu/gemma3-1b/llama/auto")
    file = RecordFile(tmp_path / "records.jsonl")
    file.redactor = redactor(
        {"MY_KEY": value}, ours=Asked(suite="demo", command=(), gate=Gate(), cells=(cell,)).words()
    )
    requests = {
        name: Request(asked="a", got="b", verdict=RequestVerdict.DROPPED, kept=False)
        for name in get_args(FieldName)
    }
    record = a_record(cell.id, attempt=an_attempt(a_report()), category="patch_raised")
    judgement = replace(record.judgement, outcome="refused", requests=requests)
    record = replace(record, judgement=judgement)

    file.append(record)

    assert [*file] == [record]


def test_no_file_holds_no_records(tmp_path: Path) -> None:
    assert [*RecordFile(tmp_path / "records.jsonl")] == []


def test_a_torn_last_line_is_no_record_and_does_not_spoil_the_next(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(a_record("cpu/a/b/c"))
    with file.path.open("a") as torn:
        torn.write('{"cell_id": "cpu/torn/b/c", "verd')

    assert [record.cell_id for record in file] == ["cpu/a/b/c"]
    file.append(a_record("cpu/d/e/f"))

    assert [record.cell_id for record in file] == ["cpu/a/b/c", "cpu/d/e/f"]


def test_a_long_torn_line_is_cut_off_whole(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(a_record("cpu/a/b/c"))
    with file.path.open("a") as torn:
        torn.write("x" * 300_000)

    file.append(a_record("cpu/d/e/f"))

    assert [record.cell_id for record in file] == ["cpu/a/b/c", "cpu/d/e/f"]


@pytest.mark.parametrize(
    "damage", ['{"cell_id":"cpu/d/e/f","colour":"red"}', '{"cell_id":"cpu/d/e/f","dig\0\0']
)
def test_a_damaged_line_is_a_cell_that_was_not_run(tmp_path: Path, damage: str) -> None:
    """Also if another line says that it passed, before: which of them counted is not known."""
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(a_record("cpu/a/b/c"), a_record("cpu/d/e/f"))
    with file.path.open("a") as damaged:
        damaged.write(damage + "\n")
    file.append(a_record("cpu/g/h/i"))

    verdicts = {record.cell_id: record for record in file}

    assert [verdicts[cell].verdict for cell in ("cpu/a/b/c", "cpu/g/h/i")] == [Verdict.PASSED] * 2
    assert verdicts["cpu/d/e/f"].verdict is Verdict.NOT_RUN
    assert "line 3 of" in verdicts["cpu/d/e/f"].judgement.reasons[0]


def test_a_line_that_names_no_cell_is_passed_over(tmp_path: Path) -> None:
    """Its cell has no record then, which never counts as passed."""
    file = RecordFile(tmp_path / "records.jsonl")
    file.path.write_bytes(b"\0\xff rubbish\n")
    file.append(a_record("cpu/a/b/c"))

    assert [record.cell_id for record in file] == ["cpu/a/b/c"]


def test_a_record_that_does_not_fit_on_the_disk_stops_the_run_and_leaves_whole_lines(
    tmp_path: Path,
) -> None:
    """A limit on the file's size cuts a write short, as a full disk does."""
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(a_record("cpu/a/b/c"))
    size, limits = file.path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    try:
        with pytest.raises(ClusterError, match=r"cpu/d/e/f can't be written .* make room"):
            file.append(a_record("cpu/d/e/f"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert file.path.stat().st_size == size
