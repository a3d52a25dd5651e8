"""The command line as a process of its own, and everything that descends from it."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from jobs import shared_memory
from tests.ray import marked

HANG = Path(__file__).parent / "hang-in-load.diff"
TOKEN = "MATRIX_TEST_RUN"
GO = "MATRIX_TEST_GO"
"""Engines that are patched with HANG do so until this file is there, unless they load llama."""

POLL_S = 0.1


@dataclass
class Driver:
    """`python -m orchestrator WORDS` in *folder*, started by `start`."""

    folder: Path
    words: Sequence[str]
    prefix: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    runs: Path | None = None
    """Where its runs lie, if not in the folder."""

    patience_s: float = 150.0
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self) -> "Driver":
        self._shared_before = shared_memory.present()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / f"driver-{self.token[:6]}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "orchestrator", *self.words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    **self.environment,
                    GO: str(self.folder / "go"),
                    TOKEN: self.token,
                    "RAY_AUTH_MODE": "disabled",
                },
                start_new_session=True,
            )
        return self

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def run(self) -> int:
        """The id of the process that drives Ray, which the supervisor forked."""
        [run] = self.processes("-m orchestrator")
        return run

    def wait(self) -> int:
        return self.process.wait(self.patience_s)

    def wait_for(self, what: str) -> None:
        """Until the output holds *what*."""
        self.until(lambda: what in self.output, f"no {what!r} in the output")

    def until(self, condition: Callable[[], object], otherwise: str) -> None:
        end = time.monotonic() + self.patience_s
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{otherwise} after {self.patience_s:.0f} s:\n{self.output}")
            time.sleep(POLL_S)

    def processes(self, part: str = "") -> list[int]:
        """Ids of living processes that this driver started, itself left out."""
        return [
            pid
            for pid in marked.carrying(f"{TOKEN}={self.token}")
            if pid != self.process.pid and part in marked.command(pid)
        ]

    def probe_in(self, phase: str, cell_id: str = "**") -> int:
        """The id of a living probe that is in *phase*, once there is one."""
        self.until(lambda: self.probes_in(phase, cell_id), f"no probe in {phase}")
        return self.probes_in(phase, cell_id)[0]

    def probes_in(self, phase: str, cell_id: str = "**") -> list[int]:
        return [
            pid
            for file in self._runs.glob(f"*/cells/{cell_id}/*/phase.json")
            if _phase(file) == phase
            for pid in self._living_probes(file.parent)
        ]

    def probes(self) -> list[int]:
        """Cells that live, in any phase."""
        return [
            pid
            for pid in self.processes("jobs.probe.host")
            if os.getsid(pid) == pid and "/cells/" in str(_folder(pid))
        ]

    def hosts(self) -> list[int]:
        """Those that serve. Keepers and cells have the command line of their host."""
        related = self.processes("jobs.probe.host")
        return [pid for pid in related if parent(pid) not in related]

    def cell_of(self, probe: int) -> str:
        folder = Path(f"/proc/{probe}/cwd").readlink()
        [cells] = self.folder.glob("runs/*/cells")
        return str(folder.parent.relative_to(cells.resolve()))

    def go(self) -> None:
        """Let the engines that hang go on, now and in later runs in this folder."""
        (self.folder / "go").touch()

    def left(self, patience_s: float = 1.0) -> list[str]:
        """Commands that it started and files in /dev/shm, if they are still there."""
        end = time.monotonic() + patience_s
        while self.processes() and time.monotonic() < end:
            time.sleep(POLL_S)
        return [*map(marked.command, self.processes()), *shared_memory.sweep(self._shared_before)]

    def kill_all(self) -> None:
        for pid in [self.process.pid, *self.processes()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def records(self) -> dict[str, dict[str, Any]]:
        return {record["cell_id"]: record for record in self.lines()}

    def lines(self) -> list[dict[str, Any]]:
        """The records in the order in which they were written."""
        [file] = self._runs.glob("*/records.jsonl")
        return [json.loads(line) for line in file.read_text().split("\n")[:-1]]

    @property
    def _runs(self) -> Path:
        return self.runs or self.folder / "runs"

    def _living_probes(self, workdir: Path) -> list[int]:
        """In their own folder, and leaders of their own session."""
        there = [pid for pid in self.processes() if _folder(pid) == workdir.resolve()]
        return [pid for pid in there if os.getsid(pid) == pid]


def environment_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _phase(file: Path) -> str | None:
    with suppress(ValueError, OSError):
        return str(json.loads(file.read_text())["phase"])
    return None


def parent(pid: int) -> int:
    return psutil.Process(pid).ppid()


def _folder(pid: int) -> Path | None:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink()
    return None
