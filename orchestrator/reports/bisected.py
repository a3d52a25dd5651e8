"""What a search found, for people."""

import shlex
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.asked import cell_ids
from orchestrator.asked.lineage import Version
from orchestrator.bisecting import Searched
from orchestrator.concluded.bisection import Side
from orchestrator.concluded.kinds import what_differs
from orchestrator.discretion import plain

_STYLES = {Side.GOOD: "green", Side.BAD: "red", Side.SKIPPED: "yellow"}


def render(found: Searched) -> Group:
    return Group(*_parts(found))


def sentence(found: Searched) -> str:
    """`v0_31_gpu (0.31.0) made it good: h100-emulated/llama/auto`"""
    question = cell_ids.question(found.tried[0].known.cell.id)
    made = f"made it {found.tried[found.finding.after].side}"
    suspects = [found.row.versions[at] for at in found.finding.suspects]
    if len(suspects) == 1:
        return f"{_named(suspects[0])} {made}: {question}"
    return (
        f"one of {len(suspects)} versions {made}: {question}. Those before the last of them say "
        f"nothing: {', '.join(map(_named, suspects))}"
    )


def _parts(found: Searched) -> Iterator[RenderableType]:
    yield Text(str(plain(sentence(found))), style="bold")
    grid = Table(box=None, show_header=False)
    for at, each in sorted(found.tried.items()):
        version = found.row.versions[at]
        side = Text(each.side, style=_STYLES[each.side])
        grid.add_row(version.build, Text(str(plain(version.title))), side, Text(each.why))
    yield grid
    before, after = (found.tried[at].known for at in (found.finding.before, found.finding.after))
    for difference in what_differs(before, after):
        yield Text(f"  {difference}")
    for one, other in found.finding.turns:
        names = f"{found.row.versions[one].build} and {found.row.versions[other].build}"
        yield Text(
            f"warning: it changes between {names} too, so there is more than one such change",
            style="yellow",
        )
    if merge := _merge(found):
        yield Text(merge, style="dim")
    cell_id = after.cell.id
    yield Text(f"vllm-matrix explain {shlex.join([str(found.run.path), cell_id])}", style="dim")


def _named(version: Version) -> str:
    return f"{version.build} ({version.title})"


def _merge(found: Searched) -> str | None:
    """A merge brings what others did, which its own line does not show."""
    version = found.row.versions[found.finding.after]
    if len(found.finding.suspects) > 1 or not version.is_merge:
        return None
    sha = version.build.rsplit("-", 1)[-1]
    return f"this is a merge: search what it brought between {sha}^1 and {sha}^2"
