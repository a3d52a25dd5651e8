"""What a report in Markdown says, in the order of what matters."""

from collections.abc import Iterator, Sequence

from orchestrator.asked.policies import ChangeKind, ConcernKind
from orchestrator.reports import alike, difference, wording
from orchestrator.reports.alike import Alike
from orchestrator.reports.document import Document
from orchestrator.reports.fitting import Item, Part
from orchestrator.reports.foreign import code, prose
from orchestrator.reports.markdown import groups, tables
from orchestrator.reports.markdown.pieces import bullet, folded, head, row, section

OPEN = 12
"""A list of more than these is folded away."""

TOLD_APART = {ConcernKind.MISPREDICTED}
"""In a table of its own."""


def parts(report: Document) -> list[Part]:
    """Those that have anything to say."""
    return [part for part in _parts(report) if part.items]


def _parts(report: Document) -> Iterator[Part]:
    kinds = {*ConcernKind} - TOLD_APART
    blocking = alike.concerns(report, "blocks", kinds)
    waived = alike.concerns(report, "waived", kinds)
    tolerated = alike.concerns(report, "tolerated", kinds - {ConcernKind.DRIFT})
    if report.proof is not None:
        reasons = map(prose, report.proof.reasons)
        yield Part(thing="objection", items=tuple(map(bullet, reasons)))
    yield section("finding", "What blocks", map(groups.entry, blocking))
    yield section("waiver", "Waivers to look at", map(groups.remark, report.gate.remarks))
    yield _disagreements(report)
    if report.proof is not None:
        yield from tables.proof(report.proof, report.cells)
    drift = alike.concerns(report, "tolerated", {ConcernKind.DRIFT})
    yield _list("change", f"Drift: {_cells(drift)}", [*map(groups.entry, drift)])
    yield from _changes(report)
    if report.comparison is not None:
        fixed = [*difference.groups(report.comparison, ChangeKind.FIXED)]
        count = report.comparison.counts.get(ChangeKind.FIXED, 0)
        yield _list("fix", f"Fixed: {wording.count(count, 'cell')}", [*map(groups.change, fixed)])
    yield folded("finding", f"Tolerated: {_cells(tolerated)}", map(groups.entry, tolerated))
    yield folded("finding", f"Waived: {_cells(waived)}", map(groups.entry, waived))
    yield tables.overview(report.cells)
    yield from tables.matrix(report.cells)
    yield _expected(report)


def _expected(report: Document) -> Part:
    found = alike.expected(report)
    cells = wording.count(sum(map(len, found.values())), "cell")
    items = (groups.expected(why, rows) for why, rows in found.items())
    return folded("finding", f"Fails as expected: {cells}", items)


def _disagreements(report: Document) -> Part:
    return section(
        "difference",
        "Predicted ≠ observed",
        (
            row(
                [
                    code(each.cell_id),
                    *map(prose, (each.field, each.predicted, each.observed, each.source)),
                ]
            )
            for each in report.disagreements
        ),
        head(["cell", "field", "predicted", "observed", "where"]),
    )


def _changes(report: Document) -> Iterator[Part]:
    for step, changes in wording.changelog(report.changes):
        items = [bullet(f"**{prose(cells)}**: {prose(what)}") for cells, what in changes]
        yield _list("change", f"Changes {step}", items)


def _list(thing: str, title: str, items: Sequence[Item]) -> Part:
    if len(items) <= OPEN:
        return section(thing, title, items)
    return folded(thing, f"{title} ({wording.count(len(items), thing)})", items)


def _cells(groups: Sequence[Alike]) -> str:
    return wording.count(sum(max(1, len(group.cells)) for group in groups), "cell")
