"""Every run in a folder, with all that its records say: also of runs that are under way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.asked.conf_files import nearest
from orchestrator.concluded.questions import fingerprint
from orchestrator.concluded.record import Record
from orchestrator.concluded.timeline import Entry
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.kept.records import Damaged
from orchestrator.kept.run_directory import Asked, RunDirectory, newest_first

Wanted = Callable[[str], bool]
"""Whether a cell of a run is asked about, by its id."""


@dataclass(frozen=True, kw_only=True)
class PastRun:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def asked(self) -> Asked | None:
        """None: it can't be read, or another version of vllm-matrix wrote it."""
        return None if isinstance(self._asked, str) else self._asked

    @cached_property
    def cells(self) -> dict[str, Cell]:
        return {} if self.asked is None else {cell.id: cell for cell in self.asked.cells}

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        return {cell.id: fingerprint(cell) for cell in self.cells.values()}

    def read(self, wanted: Wanted = lambda _: True) -> tuple[list[Entry], list[str]]:
        """
        An entry for each record, then for each cell whose last word can't be read or was never
        said; and what is wrong with the files.
        """
        lines, troubles = self._lines(wanted)
        if isinstance(self._asked, str):
            troubles.append(self._asked)
        last = {line.cell_id: line for line in lines}
        entries = [
            self._entry(line, is_last=last[line.cell_id] is line)
            for line in lines
            if isinstance(line, Record)
        ]
        told = {entry.cell_id for entry in entries if entry.is_last}
        silent = [cell_id for cell_id in self.cells if cell_id not in told and wanted(cell_id)]
        entries += [self._entry(None, cell_id=cell_id) for cell_id in silent]
        return entries, troubles + [str(line) for line in lines if isinstance(line, Damaged)]

    @cached_property
    def _asked(self) -> Asked | str:
        try:
            return RunDirectory(self.path).asked()
        except ClusterError as error:
            return str(error)

    def _lines(self, wanted: Wanted) -> tuple[Sequence[Record | Damaged], list[str]]:
        try:
            return [*RunDirectory(self.path).records.lines_of(wanted)], []
        except ClusterError as error:
            return (), [str(error)]

    def _entry(
        self, record: Record | None, *, cell_id: str | None = None, is_last: bool = True
    ) -> Entry:
        named = record.cell_id if record else str(cell_id)
        return Entry(
            run=self.name,
            cell_id=named,
            fingerprint=self.fingerprints.get(named),
            record=record,
            cell=self.cells.get(named),
            is_last=is_last,
        )


def runs_in(folder: Path) -> tuple[PastRun, ...]:
    """From the oldest to the latest. Raises ConfigError if there is none."""
    if found := tuple(PastRun(path=path) for path in reversed(newest_first(folder))):
        return found
    what = "no run in" if folder.is_dir() else "no folder"
    raise ConfigError(f"there is {what} {folder}; name the folder of your runs with --runs")


def entries(runs: Iterable[PastRun], glob: str) -> tuple[list[Entry], list[str]]:
    """
    Of the cells that *glob* names, and of those that ask the same by other names; and what
    can't be read. Raises ConfigError if there is no such cell.
    """
    runs = [*runs]
    pattern = glob if glob.count("/") != 2 else f"{glob}/*"
    names = _names(runs)
    found: list[Entry] = []
    troubles: list[str] = []
    for run in runs:
        wanted = _wanted(run, pattern, names)
        if run.asked is None or any(map(wanted, run.cells)):
            of_run, wrong = run.read(wanted)
            found += of_run
            troubles += wrong
    if not found:
        raise ConfigError(_no_such(glob, runs))
    return found, troubles


def _names(runs: Iterable[PastRun]) -> dict[str, set[str]]:
    """By fingerprint: what all runs call that question."""
    names: dict[str, set[str]] = {}
    for run in runs:
        for cell_id, asks in run.fingerprints.items():
            names.setdefault(asks, set()).add(cell_ids.question(cell_id))
    return names


def _wanted(run: PastRun, pattern: str, names: Mapping[str, set[str]]) -> Wanted:
    def wanted(cell_id: str) -> bool:
        called = names.get(run.fingerprints.get(cell_id, ""), {cell_ids.question(cell_id)})
        build = cell_ids.build(cell_id)
        return any(fnmatchcase(f"{name}/{build}", pattern) for name in called)

    return wanted


def _no_such(glob: str, runs: Iterable[PastRun]) -> str:
    ids = [*dict.fromkeys(cell_id for run in runs for cell_id in run.cells)]
    questions = [*dict.fromkeys(map(cell_ids.question, ids))]
    likely = nearest(glob, [*ids, *questions])
    return (
        f"no run has a cell {glob} (hardware/model/backend/build; the build may be left out, and "
        f"* stands for anything).{likely}"
    )
