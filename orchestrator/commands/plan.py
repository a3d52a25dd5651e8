"""Which cell runs where and why, which keep their verdict, and how long it may take."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from orchestrator.asked.cells import Cell
from orchestrator.asked.compose import compose
from orchestrator.asked.config import Config
from orchestrator.commands.nodes import nodes_of
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS
from orchestrator.kept import history, reuse, run_directory
from orchestrator.kept.reuse import Reuse
from orchestrator.run import cells_of
from orchestrator.running.forecast import Forecast, Work
from orchestrator.running.plan import Plan, make_plan
from orchestrator.running.progress import duration


def main(words: Sequence[str]) -> int:
    console = screen()
    configs = compose(words)
    if not configs:
        return SHIPS
    cells = cells_of(configs)
    reused = _reused(cells, configs[0], partial(console.print, highlight=False, markup=False))
    earlier = history.read(Path(configs[0].runs))
    plan = make_plan(cells, nodes_of(configs[0].cluster), earlier.memory_gib(cells))
    work = earlier.work(reused.left(plan.runnable))
    grid = Table("cell", "goes to", "check", "s", "GiB", box=None)
    for cell in cells:
        needs = plan.needs.get(cell.id)
        grid.add_row(
            cell.id,
            _destiny(cell, plan, reused),
            cell.check,
            f"{seconds:.1f}" if (seconds := earlier.seconds_of(cell)) is not None else "?",
            f"{needs.memory_gib:.1f}" if needs else "-",
        )
    console.print(grid)
    for line in _summary(cells, plan, reused, work):
        console.print(line, highlight=False)
    return SHIPS


def _reused(cells: Sequence[Cell], config: Config, say: Callable[[str], object]) -> Reuse:
    """As a run would begin now."""
    runs, suite = Path(config.runs), config.suite.name
    seen = reuse.seen_before(runs, suite, cells, say)
    if not config.resume:
        return reuse.anew(cells, seen)
    going_on = run_directory.unfinished(runs, suite, [cell.id for cell in cells])
    own = next((run.path.name for run in going_on), None)
    return reuse.decide(cells, seen, reuse.digests_at_hand(cells, config.cluster), own=own)


def _destiny(cell: Cell, plan: Plan, reused: Reuse) -> Text:
    if record := reused.kept.get(cell.id):
        return Text(f"{record.verdict}, kept from {record.kept_from or 'the same run'}", "dim")
    if obstacle := plan.unplaceable.get(cell.id):
        return Text(obstacle, "yellow")
    return Text(f"{', '.join(plan.hosts[cell.id])}: {reused.why[cell.id]}")


def _summary(
    cells: Sequence[Cell], plan: Plan, reused: Reuse, work: Mapping[str, Work]
) -> Iterator[str]:
    wall_s = Forecast(work, at_once=plan.at_once).left_s({})
    engine_s = sum(each.seconds for each in work.values())
    unplaceable = len(plan.unplaceable.keys() - reused.kept.keys())
    yield (
        f"{len(plan.runnable)} of {len(cells)} cells can run; {len(reused.kept)} keep their "
        f"verdict, {len(work)} run, {unplaceable} can't"
    )
    yield (
        f"about {duration(wall_s)}, {plan.at_once} at once, "
        f"with {duration(engine_s)} of engine time"
    )
