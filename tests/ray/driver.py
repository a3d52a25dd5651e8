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

HANG = Path(__file__).parent / "hang-in-load.diff"
TOKEN = "MATRIX_TEST_RUN"
POLL_S = 0.1
GONE_S = 20
SLOW_TO_GO = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Ray's own, which look for a killed driver's cluster for another minute, and then go."""


@dataclass
class Driver:
    """`python -m orchestrator WORDS` in *folder*, started by `start`."""

    folder: Path
    words: Sequence[str]
    prefix: Sequence[str] = ()
    patience_s: float = 150.0
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self) -> "Driver":
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / f"driver-{self.token[:6]}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "orchestrator", *self.words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, TOKEN: self.token, "RAY_AUTH_MODE": "disabled"},
                start_new_session=True,
            )
        return self

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

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
            for pid in (int(path.name) for path in Path("/proc").glob("[0-9]*"))
            if pid != self.process.pid and self._is_ours(pid) and part in _command(pid)
        ]

    def probe_in(self, phase: str) -> int:
        """The id of a probe that is in *phase*, once there is one."""
        found: list[int] = []

        def look() -> bool:
            for file in self.folder.glob("runs/*/cells/**/phase.json"):
                with suppress(ValueError, OSError):
                    if json.loads(file.read_text())["phase"] == phase:
                        found.extend(self._living_probes(file.parent))
            return bool(found)

        self.until(look, f"no probe in {phase}")
        return found[0]

    def left(self) -> list[str]:
        """Commands of what it started and is still there. A process may take a moment to go."""
        end = time.monotonic() + GONE_S
        while (left := self._left()) and time.monotonic() < end:
            time.sleep(POLL_S)
        return left

    def kill_all(self) -> None:
        for pid in [self.process.pid, *self.processes()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def records(self) -> dict[str, dict[str, Any]]:
        [file] = self.folder.glob("runs/*/records.jsonl")
        lines = file.read_text().splitlines()
        return {record["cell_id"]: record for record in map(json.loads, lines)}

    def _left(self) -> list[str]:
        commands = map(_command, self.processes())
        return [command for command in commands if not command.startswith(SLOW_TO_GO)]

    def _living_probes(self, workdir: Path) -> list[int]:
        return [pid for pid in self.processes() if _folder(pid) == workdir.resolve()]

    def _is_ours(self, pid: int) -> bool:
        with suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return f"{TOKEN}={self.token}".encode() in environment
        return False


def environment_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def _folder(pid: int) -> Path | None:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink()
    return None
