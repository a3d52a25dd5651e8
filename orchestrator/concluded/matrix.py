"""The compatibility matrix: the last word on every cell of a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.asked.cells import Cell
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.predictions import Disagreement, Observation, accuracy, observation
from orchestrator.concluded.record import Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    cells: tuple[Cell, ...]
    records: dict[str, Record] = field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] = ()
    """Where emulated engines and real cards differ."""

    confirmed: tuple[str, ...] = ()
    """Ids of the emulated cells of which a real card did the very same."""

    def record(self, cell: Cell) -> Record | None:
        return self.records.get(cell.id)

    def verdict(self, cell: Cell) -> Verdict:
        """A cell without a record was not run; it never counts as passed."""
        record = self.record(cell)
        return Verdict.NOT_RUN if record is None else record.verdict

    def reasons(self, cell: Cell) -> tuple[str, ...]:
        record = self.record(cell)
        return ("there is no record of it",) if record is None else record.judgement.reasons

    def count(self, verdict: Verdict) -> int:
        return sum(self.verdict(cell) is verdict for cell in self.cells)


def build(
    cells: Sequence[Cell], records: Iterable[Record], evidence: Iterable[Observation] = ()
) -> Matrix:
    """
    Later records of a cell replace earlier ones.

    Emulated cells are compared with *evidence*, and with the real cells of this matrix.
    """
    latest = {record.cell_id: record for record in records}
    here = [observation(record, "this run") for record in latest.values()]
    predicted = accuracy(cells, latest, [*evidence, *filter(None, here)])
    return Matrix(
        cells=tuple(cells),
        records=latest,
        disagreements=predicted.disagreements,
        confirmed=predicted.confirmed,
    )
