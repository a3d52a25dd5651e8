"""What two runs differ in: on the screen, and in Markdown."""

from collections.abc import Iterator, Sequence

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from orchestrator.asked.policies import ChangeKind
from orchestrator.reports.difference import ComparisonRow, Group, groups, subjects
from orchestrator.reports.foreign import prose

STYLES = {
    ChangeKind.REGRESSED: "bold red",
    ChangeKind.MISPREDICTED: "bold red",
    ChangeKind.BROKEN_BEFORE: "red",
    ChangeKind.INFRASTRUCTURE: "yellow",
    ChangeKind.NO_VERDICT: "yellow",
    ChangeKind.FLAKY: "yellow",
    ChangeKind.NO_BASELINE: "yellow",
    ChangeKind.DRIFT: "cyan",
    ChangeKind.FIXED: "bold green",
    ChangeKind.UNCHANGED: "green",
}
GONE = "gone"
SHOWN = 8
"""Questions of one group, and cells that are gone, that the screen has room for."""

OPEN = (ChangeKind.REGRESSED, ChangeKind.MISPREDICTED)
"""What Markdown does not fold."""


def render(compared: ComparisonRow) -> Parts:
    return Parts(*parts(compared))


def to_markdown(compared: ComparisonRow) -> str:
    return "\n".join(_markdown(compared)) + "\n"


def parts(compared: ComparisonRow) -> Iterator[RenderableType]:
    worse = ChangeKind.REGRESSED in compared.counts
    yield Text(compared.sentence, style="bold red" if worse else "bold")
    yield Text(f"{compared.base} → {compared.candidate}", style="dim")
    for kind, alike in _by_kind(compared):
        yield ""
        yield Text(f"{kind}: {compared.counts[kind]}", style=STYLES[kind])
        for group in alike:
            yield from (Text(f"  {line}") for line in _shortened(subjects(group.cells)))
            yield from (Text(f"      {line}", style="dim") for line in _said(group))
    if compared.gone:
        yield ""
        yield Text(f"{GONE}: {len(compared.gone)}", style="yellow")
        yield from (Text(f"  {line}") for line in _shortened(compared.gone))


def _by_kind(compared: ComparisonRow) -> Iterator[tuple[ChangeKind, list[Group]]]:
    found = [*groups(compared)]
    for kind in dict.fromkeys(group.kind for group in found):
        yield kind, [group for group in found if group.kind is kind]


def _said(group: Group) -> Iterator[str]:
    if group.turn:
        yield group.turn
    yield from group.lines


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"and {len(lines) - SHOWN} more"


def _markdown(compared: ComparisonRow) -> Iterator[str]:
    yield f"**{prose(compared.sentence)}**"
    yield f"\n{prose(compared.base)} → {prose(compared.candidate)}"
    for kind, alike in _by_kind(compared):
        items = [line for group in alike for line in _item(group)]
        yield from _section(f"{kind}: {compared.counts[kind]}", items, is_open=kind in OPEN)
    if compared.gone:
        items = [f"- {prose(cell_id)}" for cell_id in compared.gone]
        yield from _section(f"{GONE}: {len(compared.gone)}", items, is_open=False)


def _item(group: Group) -> Iterator[str]:
    yield f"- {'; '.join(map(prose, subjects(group.cells)))}"
    yield from (f"  - {prose(line)}" for line in _said(group))


def _section(title: str, items: Sequence[str], *, is_open: bool) -> Iterator[str]:
    if is_open:
        yield f"\n### {prose(title)}\n"
        yield from items
        return
    yield f"\n<details>\n<summary>{title}</summary>\n"
    yield from items
    yield "\n</details>"
