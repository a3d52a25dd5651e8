"""The gate's answer in one sentence. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from orchestrator.asked.policies import ChangeKind, ConcernKind
from orchestrator.concluded.comparison import Comparison
from orchestrator.concluded.concerns import Concern
from orchestrator.concluded.judge import Verdict

PLACES = 2
"""So many are named."""

CATEGORIES = 3

_ONE_AND_MANY = {
    ConcernKind.REGRESSED: ("regression", "regressions"),
    ConcernKind.MISPREDICTED: (
        "prediction differs from a real card",
        "predictions differ from a real card",
    ),
    ConcernKind.BROKEN_BY_FIX: ("regressed with the fix", "regressed with the fix"),
    ConcernKind.GONE: ("cell gone", "cells gone"),
    ConcernKind.WAIVER: ("waiver unexpectedly passing", "waivers unexpectedly passing"),
}

_IN_ORDER = (
    ChangeKind.MISPREDICTED,
    ChangeKind.BROKEN_BEFORE,
    ChangeKind.INFRASTRUCTURE,
    ChangeKind.NO_VERDICT,
    ChangeKind.FLAKY,
    ChangeKind.NO_BASELINE,
    ChangeKind.DRIFT,
    ChangeKind.FIXED,
    ChangeKind.UNCHANGED,
)

_FAILED = (ConcernKind.FAILED, ConcernKind.INFRASTRUCTURE)
"""Told together with what was not run, and with the number of all cells."""


def blocked(blockers: Sequence[Concern], *, cells: int, places: Collection[str]) -> str:
    """*places* are those of the whole run: one that is the only one is not worth a word."""
    return f"blocked: {'; '.join(_troubles(blockers, cells, places))}"


def ships(  # noqa: PLR0913  # all that a reader wants to know at once
    tolerated: Iterable[Concern],
    *,
    cells: int,
    passed: int,
    waived: int,
    fixed: int,
    confirmed: int,
) -> str:
    parts = [
        f"{passed} of {cells} cells passed",
        *([f"{waived} waived"] if waived else []),
        *([f"{fixed} fixed"] if fixed else []),
        *([f"{confirmed} confirmed by a real card"] if confirmed else []),
    ]
    kinds = Counter(concern.kind for concern in tolerated)
    let_pass = ", ".join(counted(kind, kinds[kind]) for kind in ConcernKind if kinds[kind])
    return f"ships: {', '.join(parts)}" + (f"; tolerated: {let_pass}" if let_pass else "")


def counted(kind: ConcernKind, number: int) -> str:
    """`1 regression`, `3 drifted`"""
    one, many = _ONE_AND_MANY.get(kind, (str(kind), str(kind)))
    return f"{number} {one if number == 1 else many}"


def _troubles(blockers: Sequence[Concern], cells: int, places: Collection[str]) -> Iterator[str]:
    told: set[ConcernKind] = set()
    for kind in ConcernKind:
        alike = [each for each in blockers if each.kind is kind]
        if not alike or kind in told:
            continue
        if kind in {*_FAILED, ConcernKind.NOT_RUN}:
            told |= {*_FAILED, ConcernKind.NOT_RUN}
            yield f"{_not_passed(blockers, places)} of {cells} cells"
        elif kind in {ConcernKind.CLAIM, ConcernKind.BASELINE, ConcernKind.COVERAGE}:
            yield from (each.reason for each in alike)
        elif kind is ConcernKind.REGRESSED:
            yield _regressions(alike, places)
        else:
            yield f"{counted(kind, len(alike))}{_where(alike, places)}"


def _regressions(alike: Sequence[Concern], places: Collection[str]) -> str:
    count = counted(ConcernKind.REGRESSED, len(alike))
    return f"{count}{_where(alike, places)}{_all(alike)}{_since(alike)}"


def _not_passed(blockers: Iterable[Concern], places: Collection[str]) -> str:
    """`2 failed on gfx942 (silent_fallback, timeout) and 1 not run`"""
    parts: list[str] = []
    for verdict in (Verdict.FAILED, Verdict.NOT_RUN):
        alike = [
            each
            for each in blockers
            if each.kind in {*_FAILED, ConcernKind.NOT_RUN} and each.verdict is verdict
        ]
        if alike:
            categories = ", ".join(dict.fromkeys(b.category for b in alike if b.category))
            which = f" ({categories})" if categories else ""
            parts.append(f"{len(alike)} {verdict}{_where(alike, places)}{which}")
    return " and ".join(parts)


def _where(alike: Iterable[Concern], places: Collection[str]) -> str:
    """Nothing where it is everywhere, or at too many places to name."""
    there = [*dict.fromkeys(each.place for each in alike)]
    named = [place for place in there if place is not None]
    if not named or len(named) < len(there) or len(named) == len(places) or len(named) > PLACES:
        return ""
    return f" on {' and '.join(named)}"


def _all(alike: Sequence[Concern]) -> str:
    """`, all kv_layout_conflict`, or how many are of which category."""
    found = Counter(each.category for each in alike if each.category).most_common()
    if not found:
        return ""
    if len(alike) == 1:
        return f", {found[0][0]}"
    if found[0][1] == len(alike):
        return f", all {found[0][0]}"
    shown = [f"{number} {category}" for category, number in found[:CATEGORIES]]
    rest = len(alike) - sum(number for _, number in found[:CATEGORIES])
    return f", {', '.join([*shown, *([f'{rest} of other kinds'] if rest else [])])}"


def _since(alike: Iterable[Concern]) -> str:
    versions = {each.since for each in alike}
    since = next(iter(versions)) if len(versions) == 1 else None
    return f", since {since}" if since else ""


def compared(comparison: Comparison, concerns: Sequence[Concern], places: Collection[str]) -> str:
    """`1 regression on gfx942, kv_layout_conflict, since 0.32.0; 2 fixed, 18 unchanged`"""
    worse = [each for each in concerns if each.kind is ConcernKind.REGRESSED]
    head = _regressions(worse, places) if worse else "nothing regressed"
    counts = Counter(change.kind for change in comparison.cells)
    parts = [f"{counts[kind]} {kind}" for kind in _IN_ORDER if counts[kind]]
    gone = [counted(ConcernKind.GONE, len(comparison.gone))] if comparison.gone else []
    return f"{head}; {', '.join([*parts, *gone])}" if parts or gone else head
