"""What GitHub shows beside files and checks: a few lines of what blocks, and where to look."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from orchestrator.asked.policies import ConcernKind, Waiver
from orchestrator.github import Annotation, Level, Place
from orchestrator.reports import alike, wording
from orchestrator.reports.alike import Alike
from orchestrator.reports.document import Document

MOST = 10
"""GitHub shows so many of a level that come from one step, and drops the others in silence."""

CELLS = 10

OF_A_BUILD = ("build_broken", "patch_raised")
FILES = {"vllm": "build", "user": "backend", "model": "model"}
"""The file to look at, by who owns the failure; of others none is at fault."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where things stand in files; None where no file is known."""

    of_entry: Callable[[str, str], Place | None]
    """Of an entry of conf/, by group and name."""

    of_waiver: Callable[[Waiver], Place | None]


def annotations(report: Document, places: Places) -> list[Annotation]:
    found = [*_found(report, places)]
    return [
        each
        for level in ("error", "warning", "notice")
        for each in _at_most(MOST, [one for one in found if one.level == level])
    ]


def _found(report: Document, places: Places) -> Iterator[Annotation]:
    gate = report.gate
    level: Level = "notice" if gate.ships else "error"
    yield Annotation(level=level, title=f"vllm-matrix {report.suite}", message=gate.sentence)
    for group in alike.concerns(report, "blocks", ConcernKind):
        yield _of(group, "error", _place(group, places))
    for remark in gate.remarks:
        yield Annotation(
            level="error" if remark.blocks else "warning",
            title=f"waiver of {remark.waiver.cells}: {remark.trouble}",
            message=f"{remark.text}\n{remark.waiver.owner}: {remark.waiver.reason}",
            place=places.of_waiver(remark.waiver),
        )
    for group in alike.concerns(report, "tolerated", ConcernKind):
        yield _of(group, "notice", None)


def _of(group: Alike, level: Level, place: Place | None) -> Annotation:
    where = f": {group.where}" if group.where else ""
    more = len(group.cells) - CELLS
    lines = [
        group.concern.reason,
        *(wording.help_with(group.rows[0])[:1] if group.rows else ()),
        *group.cells[:CELLS],
        *([f"and {more:,} more"] if more > 0 else []),
    ]
    return Annotation(
        level=level, title=f"{group.what}{where}", message="\n".join(lines), place=place
    )


def _place(group: Alike, places: Places) -> Place | None:
    """Of one build, backend or model that all of them share."""
    if not group.rows or (failure := group.rows[0].failure) is None:
        return None
    of = "build" if failure.category in OF_A_BUILD else FILES.get(failure.owner)
    if of is None:
        return None
    names = {
        {"build": row.build.name, "backend": row.backend, "model": row.model}[of]
        for row in group.rows
    }
    return places.of_entry(of, names.pop()) if len(names) == 1 else None


def _at_most(most: int, found: list[Annotation]) -> Iterator[Annotation]:
    if len(found) <= most:
        yield from found
        return
    yield from islice(found, most - 1)
    rest = found[most - 1 :]
    yield Annotation(
        level=rest[0].level,
        title=f"and {len(rest):,} more",
        message="\n".join(["GitHub shows no more; the summary has all:", *(o.title for o in rest)]),
    )
