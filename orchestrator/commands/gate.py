"""May the release that a run looked at ship? Exits with 0 or 1."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from orchestrator.commands.parsing import Parser
from orchestrator.concluded.concerns import Concern
from orchestrator.concluded.gate import Decision
from orchestrator.errors import BLOCKED, SHIPS
from orchestrator.kept.run_directory import find
from orchestrator.run import conclude


def parser() -> Parser:
    return Parser("gate", __doc__, {"gate latest": "the newest run"}).runs()


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    decision = conclude(find(chosen.run)).decision
    console.print(decision.sentence())
    for line in _evidence(decision):
        console.print(f"  {line}")
    return SHIPS if decision.ships else BLOCKED


def _evidence(decision: Decision) -> Iterator[str]:
    if decision.demonstration is not None:
        yield decision.demonstration.sentence()
        yield from (f"  {reason}" for reason in decision.demonstration.reasons)
    yield from map(_line, decision.blockers)
    for each in decision.waived:
        concern, waiver = each.concern, each.waiver
        yield f"waived: {concern.cell_id}: {_what(concern)}: {waiver.reason} ({waiver.owner})"
    for concern in decision.tolerated:
        yield f"tolerated: {_line(concern)}"
    for remark in decision.remarks:
        owned = f"waiver of {remark.waiver.cells} ({remark.waiver.owner})"
        yield f"{owned}, {remark.trouble}: {remark.text}"


def _line(concern: Concern) -> str:
    place = f"{concern.cell_id}: " if concern.cell_id else ""
    return f"{place}{_what(concern)}: {concern.reason}"


def _what(concern: Concern) -> str:
    return f"{concern.kind} ({concern.category})" if concern.category else str(concern.kind)
