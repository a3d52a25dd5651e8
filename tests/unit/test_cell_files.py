"""The files of a cell, whatever its engine made of them."""

from pathlib import Path

import pytest

from jobs.contract.terms import Phase
from jobs.node import cell_files
from jobs.node.cell_files import CellFiles
from jobs.secrets import redactor
from tests.unit.standin import a_request, run

TOKEN = "hf_plantedABCDEFGHIJKLMNOP"
HIDES = redactor({"HF_TOKEN": TOKEN})


@pytest.mark.usefixtures("no_host_stays")
@pytest.mark.parametrize(
    "evil",
    [
        "os.symlink('/nowhere/at/all', folder / 'x.json')",
        "os.mkdir(folder / 'x.json')",
        "os.mkfifo(folder / 'x.jsonl')",
        "os.symlink('phase.json', folder / 'phase.json')",
        "os.symlink('memory.json', folder / 'memory.json')",
    ],
)
def test_an_answer_counts_whatever_lies_beside_it(tmp_path: Path, evil: str) -> None:
    attempt = run(a_request(tmp_path, f"{evil}; report(ready=True)"))

    assert attempt["report"]["ready"]


@pytest.mark.usefixtures("no_host_stays")
def test_a_cell_that_removes_its_folder_has_lost_its_report(tmp_path: Path) -> None:
    attempt = run(a_request(tmp_path, "import shutil; report(); shutil.rmtree(folder)"))

    assert (attempt["report"], attempt["exit"]["code"]) == (None, 0)
    assert "the log can't be read" in attempt["log_tail"]


def test_a_report_that_leads_in_a_circle_is_none(tmp_path: Path) -> None:
    files = CellFiles(folder=tmp_path)
    for file in (files.report, files.phase):
        file.symlink_to(file.name)

    with pytest.raises(ValueError, match="symbolic links"):
        files.read_report()
    assert files.read_phase() is Phase.PREPARE


def test_another_try_clears_folders_and_links_away(tmp_path: Path) -> None:
    files = CellFiles(folder=tmp_path / "cell")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (files.folder / "x.json" / "deep").mkdir(parents=True)
    (files.folder / "y.json").symlink_to(elsewhere)
    (files.folder / "z.json").symlink_to("/nowhere/at/all")

    files.prepare(a_request(tmp_path, "").probe, HIDES)

    assert {file.name for file in files.folder.iterdir()} == {"request.json", "probe.log"}
    assert elsewhere.is_dir()


@pytest.mark.parametrize("name", ["trace.json", "trace.jsonl"])
def test_what_is_too_large_to_be_searched_for_secrets_is_removed_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(cell_files, "LARGEST_REPORT", 2**20)
    (tmp_path / name).write_text(TOKEN + "x" * 2**20)

    [note] = CellFiles(folder=tmp_path).redact(HIDES)

    assert note == f"{name} was removed, since it may hold secrets: it is larger than 1 MiB"
    assert [*tmp_path.iterdir()] == []
