"""Cells of which the same is to be said stand together, the most telling ones first."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.asked.policies import ConcernKind
from orchestrator.concluded.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import ConcernRow, Document, Effect
from orchestrator.reports.rows import CellRow
from orchestrator.taxonomy import says_nothing_of_vllm


@dataclass(frozen=True, kw_only=True, slots=True)
class Alike:
    """Concerns that differ in their cell alone."""

    concern: ConcernRow
    """The first of them."""

    cells: tuple[str, ...]
    """None where it is of a card, or of the run as a whole."""

    rows: tuple[CellRow, ...]
    """Of those cells that the run has."""

    @property
    def what(self) -> str:
        """`failed (silent_fallback)`"""
        kind, category = self.concern.kind, self.concern.category
        return f"{kind} ({category})" if category else str(kind)

    @property
    def where(self) -> str:
        """`3 cells`, or nothing."""
        return wording.count(len(self.cells), "cell") if self.cells else ""

    @property
    def builds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.build.name for row in self.rows))


def concerns(report: Document, effect: Effect, kinds: Iterable[ConcernKind]) -> list[Alike]:
    rows = {row.id: row for row in report.cells}
    wanted = {*kinds}
    groups: dict[tuple[object, ...], list[ConcernRow]] = {}
    for each in report.gate.concerns:
        if each.effect == effect and each.kind in wanted:
            alike = (each.kind, each.verdict, each.category, each.reason, each.since, each.waiver)
            groups.setdefault(alike, []).append(each)
    return sorted((_group(found, rows) for found in groups.values()), key=_importance)


def expected(report: Document) -> dict[str, list[CellRow]]:
    """What was refused or failed as the suite expects, and passed by that, by its cause."""
    groups: dict[str, list[CellRow]] = {}
    for row in report.cells:
        if row.verdict is Verdict.PASSED and (why := wording.why(row)):
            groups.setdefault(why, []).append(row)
    return groups


def _group(found: list[ConcernRow], rows: dict[str, CellRow]) -> Alike:
    cells = tuple(each.cell_id for each in found if each.cell_id is not None)
    return Alike(
        concern=found[0], cells=cells, rows=tuple(rows[cell] for cell in cells if cell in rows)
    )


def _importance(group: Alike) -> tuple[int, bool, int]:
    kinds = [*ConcernKind]
    foreign = says_nothing_of_vllm(group.concern.category)
    return kinds.index(group.concern.kind), foreign, -len(group.cells)
