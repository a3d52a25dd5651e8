"""What the gate made of each cell, and of the run as a whole."""

from collections.abc import Iterator
from typing import get_args

from orchestrator.asked.policies import ConcernKind
from orchestrator.reports import alike
from orchestrator.reports.alike import Alike
from orchestrator.reports.document import Document, Effect


def by_cell(report: Document) -> dict[str, dict[Effect, str]]:
    """What weighs most comes first."""
    told: dict[str, dict[Effect, str]] = {}
    for effect, group in _groups(report):
        for cell in group.cells:
            told.setdefault(cell, {}).setdefault(effect, _line(effect, group))
    return told


def of_run(report: Document) -> Iterator[str]:
    """What no cell shows: coverage, a baseline that is missing, waivers to look at."""
    yield from (_line(effect, group) for effect, group in _groups(report) if not group.cells)
    for remark in report.gate.remarks:
        waiver = remark.waiver
        yield f"waiver of {waiver.cells} ({waiver.owner}), {remark.trouble}: {remark.text}"


def _groups(report: Document) -> Iterator[tuple[Effect, Alike]]:
    for effect in get_args(Effect):
        for group in alike.concerns(report, effect, ConcernKind):
            yield effect, group


def _line(effect: Effect, group: Alike) -> str:
    since = f", since {group.concern.since}" if group.concern.since else ""
    line = f"{effect}: {group.what}{since}: {group.concern.reason}"
    if (waiver := group.concern.waiver) is None:
        return line
    until = f", until {waiver.expires}" if waiver.expires else ""
    return f"{line}; {waiver.reason} ({waiver.owner}{until})"
