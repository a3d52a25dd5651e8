"""The progress of a run that was submitted: besides what it shows, it leaves parcels."""

from collections.abc import Mapping
from pathlib import Path

from orchestrator.concluded.record import Record
from orchestrator.errors import ClusterError
from orchestrator.remote.sender import Sender
from orchestrator.running.forecast import Work
from orchestrator.running.progress import Progress

PARCELS = "VLLM_MATRIX_PARCELS"
"""In the environment of a run that was submitted, and is to leave parcels."""

_STDOUT = Path("/proc/self/fd/1")
_BEGIN = "job-driver-"
"""Ray keeps what a job says in a file of that name, with the submission's id, among its logs."""


class SentProgress:
    def __init__(self, shown: Progress) -> None:
        log = _STDOUT.readlink()
        if not log.name.startswith(_BEGIN):
            raise ClusterError(f"this is no job of Ray's, which would write to a log: {log}")
        self._shown = shown
        self._folder = log.parent
        self._name = log.stem.removeprefix(_BEGIN)
        self._sender: Sender | None = None

    def say(self, line: str) -> None:
        self._shown.say(line)

    def begins(self, run: Path, line: str) -> None:
        self._shown.begins(run, line)
        self._sender = Sender(run, self._folder, self._name)

    def planned(self, work: Mapping[str, Work], *, kept: int, cells: int, at_once: int) -> None:
        self._shown.planned(work, kept=kept, cells=cells, at_once=at_once)

    def look(self, submitted: Mapping[str, str]) -> None:
        self._shown.look(submitted)
        if self._sender:
            self._sender.look(submitted)

    def ended(self, *records: Record) -> None:
        self._shown.ended(*records)

    def close(self) -> None:
        """Everything that the run left."""
        if self._sender:
            self._sender.close()
            if trouble := self._sender.trouble:
                self.say(f"what this run leaves can't be fetched from elsewhere: {trouble}")
