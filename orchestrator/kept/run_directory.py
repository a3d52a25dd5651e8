"""A run on disk: where it lies, what it was asked, and whether an earlier one goes on."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal

import filelock
import pydantic
import pydantic_core

from jobs.contract.asked import Home
from jobs.contract.terms import STRICT
from jobs.secrets import Redactor, redactor
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Proof
from orchestrator.asked.policies import Gate
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.predictions import Observation
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.kept.records import RecordFile, words


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a run was asked, as `run.json` keeps it: enough to judge and to repeat it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    suite: str
    command: tuple[str, ...]
    """The words after `vllm-matrix run`."""

    gate: Gate
    cells: tuple[Cell, ...]
    proof: Proof | None = None
    evidence: tuple[Observation, ...] = ()
    """What real cards did, to hold predictions against."""

    run_version: Literal[1] = 1

    def terms(self) -> tuple[Any, ...]:
        """By what the cells are judged."""
        expectations = {cell.id: cell.expectation for cell in self.cells}
        return expectations, self.gate, self.proof, self.evidence

    def redactor(self) -> Redactor:
        """Of the secrets that this process has, and those that engines are given."""
        parts = [part for cell in self.cells for part in (cell.model, cell.backend, cell.build)]
        given = [dataclasses.asdict(part) for part in {id(part): part for part in parts}.values()]
        names = dict.fromkeys(name for cell in self.cells for name in cell.secrets)
        return redactor({"here": os.environ, "given": given}, names, self.words())

    def words(self) -> set[str]:
        """What stands in every report: the names of cells, and words of ours."""
        ids = [cell.id for cell in self.cells]
        return {self.suite, *ids, *"/".join(ids).split("/"), *words(), *words(_adapter)}


_WITNESS = re.compile(r"\.[0-9a-f]{32}")

ORDER = "order"
LATEST = "latest"
SUMMARY = "summary.json"
RUNS_READ = 10
"""Runs of a suite that are looked at, the newest first: older ones say little of today."""

_adapter = pydantic.TypeAdapter(Asked)


class RunDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = RecordFile(path / "records.jsonl")
        self.cells = path / "cells"
        self._lock = filelock.FileLock(path / "run.lock")

    def asked(self) -> Asked:
        file = self.path / "run.json"
        try:
            return _adapter.validate_json(file.read_bytes())
        except (OSError, pydantic.ValidationError) as error:
            raise ClusterError(
                f"{file} can't be read, or another version of vllm-matrix wrote it: "
                f"{' '.join(str(error).split())[:200]}"
            ) from None

    def write(self, name: str, text: str) -> None:
        """Write *name* so that a reader sees all of it or none."""
        temporary = self.path / f".{name}.{os.getpid()}"
        try:
            temporary.write_text(text)
            temporary.replace(self.path / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise ClusterError(f"{self.path / name} can't be written: {error.strerror}") from error

    def note(self, asked: Asked) -> None:
        self.records.redactor = asked.redactor()
        shown = self.records.redactor.value(_adapter.dump_python(asked, mode="json"))
        self.write("run.json", pydantic_core.to_json(shown, indent=1).decode())

    def home(self) -> Home:
        """By which nodes tell whether they see this very directory, and who drives the run now."""
        earlier = [file for file in self.path.glob(".*") if _WITNESS.fullmatch(file.name)]
        witness = f".{uuid.uuid4().hex}"
        self.write(witness, "")
        for file in earlier:
            file.unlink(missing_ok=True)
        return Home(folder=str(self.path.resolve()), witness=witness)

    def stand_last(self) -> None:
        """Be the newest of all runs in the folder."""
        self.write(ORDER, str(1 + max(map(_order, self.path.parent.iterdir()))))

    def is_unfinished(self) -> bool:
        """Whether any cell still lacks a verdict."""
        verdicts = {record.cell_id: record.verdict for record in self.records}
        return any(
            verdicts.get(cell.id, Verdict.NOT_RUN) is Verdict.NOT_RUN for cell in self.asked().cells
        )

    def is_blank(self) -> bool:
        """Whether no cell was even tried."""
        return not self.cells.exists() and not self.records.path.exists()

    def is_begun(self) -> bool:
        return not self.is_blank()

    def shipped(self) -> bool:
        """As its gate said when it ended."""
        try:
            return bool(json.loads((self.path / SUMMARY).read_bytes())["gate"]["ships"])
        except (OSError, ValueError, LookupError, TypeError):
            return False

    def claim(self) -> bool:
        """Take this directory for the life of the process; False if another run has it."""
        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            return False
        return True

    def release(self) -> None:
        self._lock.release()


@contextlib.contextmanager
def claimed(
    runs: Path, asked: Asked, *, today: date, resume: bool = True
) -> Iterator[tuple[RunDirectory, bool]]:
    """
    A directory that is ours alone while we work, and whether an interrupted run goes on in it.

    The newest run of the suite that asked for the same cells, by their ids, and has
    cells without a verdict is resumed; otherwise there is a new `<date>-<suite>[-n]`,
    of which nothing stays when the run ends before its first cell is tried.
    """
    run, resumed = _start(runs, asked, today, resume=resume)
    try:
        yield run, resumed
    except (ConfigError, ClusterError):
        if not resumed and run.is_blank():
            shutil.rmtree(run.path, ignore_errors=True)
        raise
    finally:
        run.release()


def _start(runs: Path, asked: Asked, today: date, *, resume: bool) -> tuple[RunDirectory, bool]:
    try:
        runs.mkdir(parents=True, exist_ok=True)
        found = _resumable(runs, asked) if resume else None
        return found or _new(runs, asked, today)
    except OSError as error:
        raise ClusterError(
            f"the run directory can't be made in {runs}: {error.strerror}. "
            "Choose another place with runs=FOLDER."
        ) from error


def find(name: str, runs: Path = Path("runs")) -> RunDirectory:
    """A run by its path, by its name in *runs*, or `latest`."""
    path = next(iter(newest_first(runs)), None) if name == LATEST else Path(name)
    candidates = [] if path is None else [path, runs / path]
    for candidate in candidates:
        if (candidate / "run.json").is_file():
            return RunDirectory(candidate)
    known = ", ".join(run.name for run in newest_first(runs)) or "none yet"
    raise ConfigError(f"there is no run {name}; runs in {runs}: {known}")


def before(run: RunDirectory, *, shipped: bool = False) -> RunDirectory | None:
    """The newest run of its suite that is older: in which a cell was tried, or that *shipped*."""
    earlier = map(RunDirectory, newest_first(run.path.parent, run.asked().suite))
    own = _order(run.path)
    fit = RunDirectory.shipped if shipped else RunDirectory.is_begun
    return next((each for each in earlier if _order(each.path) < own and fit(each)), None)


def unfinished(runs: Path, suite: str, cell_ids: Iterable[str]) -> Iterator[RunDirectory]:
    """Runs of the suite that asked for these cells and lack verdicts, the newest first."""
    wanted = {*cell_ids}
    for path in newest_first(runs, suite)[:RUNS_READ]:
        run = RunDirectory(path)
        with contextlib.suppress(ClusterError):
            if {cell.id for cell in run.asked().cells} == wanted and run.is_unfinished():
                yield run


def _resumable(runs: Path, asked: Asked) -> tuple[RunDirectory, bool] | None:
    for run in unfinished(runs, asked.suite, [cell.id for cell in asked.cells]):
        # Who had it until now may have finished it.
        if run.claim() and run.is_unfinished():
            # The cells and the gate may be described in another way than last time.
            _note(run, asked)
            return run, True
        run.release()
    return None


def _new(runs: Path, asked: Asked, today: date) -> tuple[RunDirectory, bool]:
    for name in _names(f"{today.isoformat()}-{asked.suite}"):
        path = runs / name
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return _filled(RunDirectory(path), asked), False
    raise AssertionError("names do not end")


def _filled(run: RunDirectory, asked: Asked) -> RunDirectory:
    try:
        run.claim()
        _note(run, asked)
    except (OSError, ClusterError):
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run


def _note(run: RunDirectory, asked: Asked) -> None:
    run.note(asked)
    run.stand_last()


def _names(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def newest_first(runs: Path, suite: str | None = None) -> Sequence[Path]:
    """
    By the number that each run takes when it starts or goes on, one more than all others have.

    Times of change are no order: a clock may jump, and a copy has others.
    """
    found: Iterable[Path] = (file.parent for file in runs.glob("*/run.json"))
    if suite is not None:
        named = re.compile(rf"\d{{4}}-\d\d-\d\d-{re.escape(suite)}(-\d+)?")
        found = (path for path in found if named.fullmatch(path.name))
    return sorted(found, key=lambda path: (_order(path), path.name), reverse=True)


def _order(run: Path) -> int:
    try:
        return int((run / ORDER).read_text())
    except (OSError, ValueError):
        return 0
