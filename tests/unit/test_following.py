"""A run on a cluster, followed from here, when what comes of it is of no use."""

from pathlib import Path

import pytest

from orchestrator.remote import following
from orchestrator.remote.following import Following
from orchestrator.remote.jobs_api import Job, JobsApi
from orchestrator.remote.sender import Sender

OVER = Job(is_over=True, was_stopped=False, node_id="head", exit_code=0, message="")


class Dashboard(JobsApi):
    """Of a job that has ended; *torn* parcels are torn as often as it says when they are fetched."""

    def __init__(self, logs: Path, torn: dict[str, int]) -> None:
        self._logs = logs
        self._torn = torn

    def job(self, submission: str) -> Job:
        del submission
        return OVER

    def output(self, submission: str) -> str:
        return f"{submission} says this\n"

    def files(self, node_id: str, pattern: str) -> set[str]:
        del node_id
        return {file.name for file in self._logs.glob(pattern)}

    def file(self, node_id: str, name: str) -> str:
        del node_id
        text = (self._logs / name).read_text()
        if not self._torn.get(name):
            return text
        self._torn[name] -= 1
        return text[:-9]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """In which a run of two cells has left three parcels."""
    run, out = tmp_path / "there" / "2026-12-03-cells", tmp_path / "logs"
    for folder in (run, out, tmp_path / "runs"):
        folder.mkdir(parents=True)
    sender = Sender(run, out, "s1")
    for number, cell in enumerate(("a", "b")):
        (run / "cells" / cell).mkdir(parents=True)
        (run / "run.json").write_text("asked" * (number + 1))
        with (run / "records.jsonl").open("a") as records:
            records.write(f'"{cell}"\n')
        sender._looked = -1e9  # noqa: SLF001  time passes
        sender.look({})
    (run / "matrix.md").write_text("table")
    sender.close()
    return out


def followed(logs: Path, torn: dict[str, int], lines: list[str]) -> Path:
    """The run as it is here in the end."""
    run = Following(Dashboard(logs, torn), "s1", logs.parent / "runs", lines.append)
    assert run.to_the_end() == OVER
    assert run.received.is_complete
    assert run.received.run is not None
    return run.received.run


def test_a_parcel_that_was_torn_on_the_way_is_fetched_again(logs: Path) -> None:
    lines: list[str] = []

    run = followed(logs, {"s1-00001.parcel": 1}, lines)

    assert (run / "records.jsonl").read_text() == '"a"\n"b"\n'
    assert lines == ["s1 says this"]


def test_a_parcel_that_stays_torn_is_said_and_the_rest_still_comes(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.01)
    lines: list[str] = []

    run = followed(logs, {"s1-00001.parcel": 99}, lines)

    assert (run / "records.jsonl").read_text() == '"a"\n'
    assert (run / "matrix.md").read_text() == "table"
    assert any(line.startswith("part 1 of the run is passed over") for line in lines)
    assert lines[-1] == "not all of the run came here; all of it is in its folder on the cluster"
