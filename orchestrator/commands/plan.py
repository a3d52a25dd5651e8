"""Which cell goes where, why the others can't run, and how long it may take. Starts nothing."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from orchestrator.commands.nodes import nodes_of
from orchestrator.compose import compose
from orchestrator.errors import SHIPS
from orchestrator.history import estimate_s, seconds_of_cells
from orchestrator.plan import make_plan
from orchestrator.run import cells_of
from orchestrator.screen import screen


def main(words: Sequence[str]) -> int:
    console = screen()
    configs = compose(words)
    if not configs:
        return SHIPS
    cells = cells_of(configs)
    known = seconds_of_cells(Path(configs[0].runs))
    plan = make_plan(cells, nodes_of(configs[0].cluster))
    grid = Table("cell", "goes to", "check", "s", box=None)
    for cell in cells:
        obstacle = plan.unplaceable.get(cell.id)
        grid.add_row(
            cell.id,
            Text(obstacle, style="yellow") if obstacle else ", ".join(plan.hosts[cell.id]),
            cell.check,
            f"{known[cell.id]:.1f}" if cell.id in known else "?",
        )
    console.print(grid)
    ids = [cell.id for cell in plan.runnable]
    console.print(
        f"{len(ids)} of {len(cells)} cells can run; about {estimate_s(ids, known):.0f} s of "
        f"engine time ({sum(i in known for i in ids)} known from earlier runs)",
        highlight=False,
    )
    return SHIPS
