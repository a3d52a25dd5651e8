"""Cells that did not pass for the same reason stand together, the most telling ones first."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.concluded.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import Document
from orchestrator.reports.rows import CellRow
from orchestrator.taxonomy import says_nothing_of_vllm


@dataclass(frozen=True, kw_only=True, slots=True)
class Alike:
    """What can be done is the same for all of them."""

    verdict: Verdict
    category: str | None
    why: str
    rows: tuple[CellRow, ...]

    @property
    def kind(self) -> str:
        return self.category or str(self.verdict)

    @property
    def builds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.build.name for row in self.rows))

    @property
    def cells(self) -> str:
        return "1 cell" if len(self.rows) == 1 else f"{len(self.rows):,} cells"


def blocking(report: Document) -> list[Alike]:
    """What blocks by its own verdict; predictions that a real card contradicts are told apart."""
    ids = {*report.gate.blockers}
    return _grouped(
        row for row in report.cells if row.id in ids and row.verdict is not Verdict.PASSED
    )


def waived(report: Document) -> list[Alike]:
    return _grouped(row for row in report.cells if row.waived)


def expected(report: Document) -> list[Alike]:
    """What was refused or failed as the suite expects, and passed by that."""
    return _grouped(
        row for row in report.cells if row.verdict is Verdict.PASSED and wording.why(row)
    )


def _grouped(rows: Iterable[CellRow]) -> list[Alike]:
    groups: dict[tuple[Verdict, str | None, str], list[CellRow]] = {}
    for row in rows:
        groups.setdefault((row.verdict, row.category, wording.why(row)), []).append(row)
    found = [
        Alike(verdict=verdict, category=category, why=why, rows=tuple(rows))
        for (verdict, category, why), rows in groups.items()
    ]
    return sorted(found, key=_importance)


def _importance(group: Alike) -> tuple[bool, bool, int]:
    return (
        group.verdict is Verdict.NOT_RUN,
        says_nothing_of_vllm(group.category),
        -len(group.rows),
    )
