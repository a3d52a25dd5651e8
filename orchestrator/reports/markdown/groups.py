"""Cells of which the same is to be said, as one entry of a list."""

import re
import textwrap
from collections.abc import Sequence

from orchestrator.reports import wording
from orchestrator.reports.alike import Alike
from orchestrator.reports.difference import Group, subjects
from orchestrator.reports.document import RemarkRow
from orchestrator.reports.fitting import Item
from orchestrator.reports.foreign import block, code, prose
from orchestrator.reports.markdown.pieces import fold
from orchestrator.reports.markdown.signs import BLOCKED, WARNED, of_concern
from orchestrator.reports.rows import CellRow

LISTED = 3
"""More cells than these are folded away."""

CLIPPED = 200


def entry(group: Alike) -> Item:
    """With all cells and the lines that show the cause, with some cells, or in one line."""
    line = f"- {of_concern(group.concern)} **{prose(group.what)}**{_where(group)}: "
    told = [*(f"- {prose(text)}" for text in _help(group)[:1]), *_waived(group)]
    whole = [line + prose(group.concern.reason), *_below(*_all(group.cells), *told, *_shown(group))]
    shorter = [line + prose(group.concern.reason), *_below(*_some(group.cells), *told)]
    return Item(forms=("\n".join(whole), "\n".join(shorter), line + _clipped(group.concern.reason)))


def expected(why: str, rows: Sequence[CellRow]) -> Item:
    cells = [row.id for row in rows]
    category = f" ({rows[0].category})" if rows[0].category else ""
    line = f"- {prose(wording.verdict(rows[0]) + category)}, {wording.count(len(rows), 'cell')}: "
    return Item(forms=("\n".join([line + prose(why), *_below(*_all(cells))]), line + _clipped(why)))


def change(group: Group) -> Item:
    line = f"- {'; '.join(map(prose, subjects(group.cells)))}"
    told = [f"- {prose(text)}" for text in (group.turn, *group.lines) if text]
    return Item(forms=("\n".join([line, *_below(*told)]), line))


def remark(remark: RemarkRow) -> Item:
    waiver = remark.waiver
    sign = BLOCKED if remark.blocks else WARNED
    line = f"- {sign} **{prose(remark.trouble)}**: {code(waiver.cells)}, of {prose(waiver.owner)}: "
    about = f"- {prose(waiver.reason)}{_link(waiver.link)}"
    return Item(
        forms=("\n".join([line + prose(remark.text), *_below(about)]), line + _clipped(remark.text))
    )


def _where(group: Alike) -> str:
    builds, since = group.builds, group.concern.since
    of = code(builds[0]) if len(builds) == 1 else f"{len(builds)} builds"
    parts = [f" in {group.where}" if group.where else "", f" of {of}" if builds else ""]
    return "".join([*parts, f", since {prose(since)}" if since else ""])


def _all(cells: Sequence[str]) -> list[str]:
    if len(cells) <= LISTED:
        return _some(cells)
    begin, end = fold(f"these {len(cells):,} cells")
    return [begin + "\n".join(f"- {code(cell)}" for cell in cells) + end + "\n"]


def _some(cells: Sequence[str]) -> list[str]:
    more = f" and {len(cells) - LISTED:,} more" if len(cells) > LISTED else ""
    return [f"- {', '.join(map(code, cells[:LISTED]))}{more}"] if cells else []


def _help(group: Alike) -> tuple[str, ...]:
    """Who can do what, and the lines that show the cause."""
    return wording.help_with(group.rows[0]) if group.rows else ()


def _shown(group: Alike) -> list[str]:
    excerpt = _help(group)[1:]
    return ["", block("\n".join(excerpt))] if excerpt else []


def _waived(group: Alike) -> list[str]:
    if (waiver := group.concern.waiver) is None:
        return []
    until = f" until {waiver.expires}" if waiver.expires else ""
    return [f"- {prose(f'waived by {waiver.owner}{until}: {waiver.reason}')}{_link(waiver.link)}"]


def _link(link: str | None) -> str:
    if link is None:
        return ""
    is_address = re.fullmatch(r"https?://[^\s<>\\]+", link)
    return f" ([link](<{link}>))" if is_address else f" ({prose(link)})"


def _clipped(text: str) -> str:
    return prose(textwrap.shorten(text, CLIPPED, placeholder=" …"))


def _below(*texts: str) -> list[str]:
    """Indented, it belongs to the entry."""
    return [textwrap.indent(text, "  ") for text in texts]
