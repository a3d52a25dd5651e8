"""Cells that did not pass for the same reason, as one entry of a list."""

import textwrap
from collections.abc import Sequence

from orchestrator.reports import wording
from orchestrator.reports.alike import Alike
from orchestrator.reports.fitting import Item
from orchestrator.reports.foreign import block, code, prose
from orchestrator.reports.markdown.pieces import fold
from orchestrator.reports.markdown.signs import SIGNS
from orchestrator.reports.rows import CellRow

LISTED = 3
"""More cells than these are folded away."""

CLIPPED = 200


def entry(group: Alike) -> Item:
    """With all cells and the lines that show the cause, with some cells, or in one line."""
    line = f"- {SIGNS[group.verdict]} **{prose(group.kind)}** in {_where(group)}: "
    whole = [line + prose(group.why), *_below(_all(group.rows), *_help(group), *_shown(group))]
    shorter = [line + prose(group.why), *_below(f"- {_some(group.rows)}", *_help(group))]
    shortest = line + prose(textwrap.shorten(group.why, CLIPPED, placeholder=" …"))
    return Item(forms=("\n".join(whole), "\n".join(shorter), shortest))


def _where(group: Alike) -> str:
    builds = group.builds
    of = code(builds[0]) if len(builds) == 1 else f"{len(builds)} builds"
    return f"{group.cells} of {of}"


def _all(rows: Sequence[CellRow]) -> str:
    if len(rows) <= LISTED:
        return f"- {_some(rows)}"
    begin, end = fold(f"these {len(rows):,} cells")
    return begin + "\n".join(f"- {code(row.id)}" for row in rows) + end + "\n"


def _some(rows: Sequence[CellRow]) -> str:
    more = len(rows) - LISTED
    cells = ", ".join(code(row.id) for row in rows[:LISTED])
    return f"{cells} and {more:,} more" if more > 0 else cells


def _help(group: Alike) -> list[str]:
    return [f"- {prose(line)}" for line in wording.help_with(group.rows[0])[:1]]


def _shown(group: Alike) -> list[str]:
    excerpt = wording.help_with(group.rows[0])[1:]
    return ["", block("\n".join(excerpt))] if excerpt else []


def _below(*texts: str) -> list[str]:
    """Indented, it belongs to the entry."""
    return [textwrap.indent(text, "  ") for text in texts]
