"""The tables: of a proof, of cards and builds, and of all cells."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Regression
from orchestrator.reports import before_after, wording
from orchestrator.reports.before_after import Line
from orchestrator.reports.document import ProofRow
from orchestrator.reports.fitting import Item, Part
from orchestrator.reports.foreign import code, prose
from orchestrator.reports.markdown.pieces import bullet, folded, head, row, section
from orchestrator.reports.markdown.signs import SIGNS, sign_of
from orchestrator.reports.rows import CellRow


def proof(proof: ProofRow, cells: tuple[CellRow, ...]) -> Iterator[Part]:
    builds = [f"{part}: {code(build)}" for build, part in proof.arms.items()]
    lines = before_after.lines(proof, cells)
    models = dict.fromkeys(code(row.model) for row in cells if row.id in proof.cells)
    notes = [f"Model: {', '.join(models) or 'none'}."]
    if not all(line.claimed for line in lines):
        notes.append("_Italic_: not part of the claim.")
    if not proof.regressions:
        notes.append("Nothing that passes without the fix fails with it.")
    table = section(
        "comparison",
        "Before and after",
        (row(_compared(line, proof)) for line in lines),
        head(["card", "target asked", "draft asked", *builds]),
    )
    yield replace(table, end=f"\n\n{' '.join(notes)}")
    # Those of the fix itself are among what blocks.
    others = "Regressions of other attempts, against the fix"
    yield section("regression", others, _regressions(proof.attempts))


def _compared(line: Line, proof: ProofRow) -> Iterator[str]:
    asked = map(prose, (line.subject, line.target_asked, line.draft_asked))
    yield from asked if line.claimed else (f"_{text}_" for text in asked)
    for build in proof.arms:
        answer = line.answers.get(build)
        yield f"{SIGNS[answer.verdict]} {prose(answer.text)}" if answer else wording.NOTHING


def _regressions(regressions: Iterable[Regression]) -> Iterator[Item]:
    for cell, text in wording.regressions(regressions):
        yield bullet(f"{code(cell)} {prose(text)}")


def overview(cells: tuple[CellRow, ...]) -> Part:
    """How many cells of every card and build came out how."""
    builds = [*dict.fromkeys(row.build.name for row in cells)]
    cards = dict.fromkeys(row.card for row in cells)
    found: dict[tuple[str, str], list[CellRow]] = {}
    for each in cells:
        found.setdefault((each.card, each.build.name), []).append(each)
    rows = (
        row([prose(card), *(_counts(found.get((card, build), [])) for build in builds)])
        for card in cards
    )
    several = len(found) > 1
    return section(
        "card", "Cards and builds", rows if several else (), head(["card", *map(code, builds)])
    )


def _counts(rows: list[CellRow]) -> str:
    return f"{sign_of(rows)} {prose(_tally(rows))}".strip() if rows else wording.NOTHING


def _tally(rows: Iterable[CellRow]) -> str:
    counts = Counter(_word(row) for row in rows)
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())


def _word(row: CellRow) -> str:
    return str(row.verdict) if row.verdict is Verdict.PASSED else wording.verdict(row)


def matrix(cells: tuple[CellRow, ...]) -> Iterator[Part]:
    """A table for each card and build; those with something that blocks come first."""
    sections = wording.sections(cells)
    for title, rows in sorted(sections, key=lambda each: sign_of(each[1]) != SIGNS[Verdict.FAILED]):
        columns = [*_columns(rows)]
        yield folded(
            "cell",
            f"{title}: {_tally(rows)}",
            (row(prose(each[name]) for name in columns) for each in map(_cells, rows)),
            head(columns),
        )


def _columns(rows: Iterable[CellRow]) -> Iterator[str]:
    """Those in which any cell has something."""
    cells = [_cells(row) for row in rows]
    return (name for name in cells[0] if any(each[name] != wording.NOTHING for each in cells))


def _cells(row: CellRow) -> dict[str, str]:
    return {
        "model": row.model,
        "backend": row.backend,
        "verdict": f"{SIGNS[row.verdict]} {wording.verdict(row)}",
        "target got": wording.got(row, "target"),
        "draft got": wording.got(row, "draft"),
        "other requests": wording.other_requests(row) or wording.NOTHING,
        "KV layout": row.kv_layout or wording.NOTHING,
        "runner": row.runner or wording.NOTHING,
        "s": wording.seconds(row),
    }
