"""One sign for each verdict, seen before anything is read."""

from collections.abc import Sequence

from orchestrator.concluded.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import ConcernRow
from orchestrator.reports.rows import CellRow

SIGNS = {Verdict.PASSED: "✅", Verdict.FAILED: "❌", Verdict.NOT_RUN: "⚪"}


BLOCKED = "❌"
WARNED = "⚠️"


def of_concern(concern: ConcernRow) -> str:
    """Of what is wrong with a cell that passes, or with the run, it depends on the gate."""
    if concern.verdict in {Verdict.FAILED, Verdict.NOT_RUN}:
        return SIGNS[concern.verdict]
    return BLOCKED if concern.effect == "blocks" else WARNED


def sign_of(rows: Sequence[CellRow]) -> str:
    """The worst of what counts; none where all that is bad is waived, or there to fail."""
    excused = [row for row in rows if row.waived or wording.is_witness(row)]
    seen = {row.verdict for row in rows if row not in excused}
    for verdict in (Verdict.FAILED, Verdict.NOT_RUN):
        if verdict in seen:
            return SIGNS[verdict]
    return "" if excused else SIGNS[Verdict.PASSED]
