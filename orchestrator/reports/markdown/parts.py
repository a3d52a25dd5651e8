"""What a report in Markdown says, in the order of what matters."""

from collections.abc import Iterator

from orchestrator.reports import alike, wording
from orchestrator.reports.document import Document
from orchestrator.reports.fitting import Part
from orchestrator.reports.foreign import code, prose
from orchestrator.reports.markdown import tables
from orchestrator.reports.markdown.groups import entry
from orchestrator.reports.markdown.pieces import bullet, folded, head, row, section

OPEN = 12
"""A list of more than these is folded away."""


def parts(report: Document) -> list[Part]:
    """Those that have anything to say."""
    return [part for part in _parts(report) if part.items]


def _parts(report: Document) -> Iterator[Part]:
    if report.proof is not None:
        reasons = map(prose, report.proof.reasons)
        yield Part(thing="objection", items=tuple(map(bullet, reasons)))
    yield section("failure", "What blocks", map(entry, alike.blocking(report)))
    yield _disagreements(report)
    if report.proof is not None:
        yield from tables.proof(report.proof, report.cells)
    yield from _changes(report)
    waived, expected = alike.waived(report), alike.expected(report)
    yield folded("failure", f"Waived: {_cells(waived)}", map(entry, waived))
    yield tables.overview(report.cells)
    yield from tables.matrix(report.cells)
    yield folded("failure", f"Fails as expected: {_cells(expected)}", map(entry, expected))


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
        if len(items) <= OPEN:
            yield section("change", f"Changes {step}", items)
        else:
            yield folded("change", f"{len(items)} changes {step}", items)


def _cells(groups: list[alike.Alike]) -> str:
    count = sum(len(group.rows) for group in groups)
    return "1 cell" if count == 1 else f"{count:,} cells"
