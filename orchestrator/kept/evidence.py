"""What real cards did in runs of earlier days, as far as it concerns the cells of this one."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jobs.contract.terms import EngineMode
from orchestrator.asked.cells import Cell
from orchestrator.concluded.predictions import Observation, observation
from orchestrator.concluded.record import Record
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.kept.records import Damaged, RecordFile

UNUSABLE = "the evidence can't be used:"


def gather(paths: Sequence[str], cells: Iterable[Cell]) -> tuple[Observation, ...]:
    """
    From the oldest to the newest: run directories, and files of records.

    Raises ConfigError for a file that holds something else.
    """
    wanted = {_question(cell) for cell in cells if cell.engine_mode is EngineMode.EMULATED}
    if not wanted:
        return ()
    found = [(record, str(file)) for file in _files(paths) for record in _records(file)]
    found.sort(key=lambda each: each[0].at)
    seen = (read(record, source) for record, source in found)
    return tuple(
        each for each in seen if each and (each.hardware, each.model, each.backend) in wanted
    )


def _question(cell: Cell) -> tuple[str, str, str]:
    return cell.axis("hardware"), cell.axis("model"), cell.axis("backend")


def _files(paths: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]


def _records(file: Path) -> Iterator[Record]:
    """A damaged line of evidence might be the one that counts."""
    try:
        for line in RecordFile(file).lines():
            if isinstance(line, Damaged):
                raise ConfigError(UNUSABLE, [f"evidence: {line}"])
            yield line
    except ClusterError as error:
        raise ConfigError(UNUSABLE, [f"evidence: {error}"]) from None


def read(record: Record, source: str) -> Observation | None:
    """A record may be of another version of this project, or written by hand."""
    try:
        return observation(record, source)
    except (ValueError, LookupError) as error:
        mistake = f"evidence: {source}: the record of {record.cell_id} makes no sense: {error}"
        raise ConfigError(UNUSABLE, [mistake]) from None
