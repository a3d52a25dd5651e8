"""Which cell runs where and why, which keep their verdict, and how long it may take."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from orchestrator.asked.cells import Cell
from orchestrator.asked.compose import compose
from orchestrator.asked.config import Config
from orchestrator.commands.nodes import nodes_of
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS
from orchestrator.kept import history, reuse, run_directory
from orchestrator.kept.reuse import Reuse
from orchestrator.run import cells_of
from orchestrator.running import budget
from orchestrator.running.budget import Fitted
from orchestrator.running.forecast import Forecast, Work
from orchestrator.running.plan import Plan, make_plan
from orchestrator.running.progress import duration


def parser() -> Parser:
    return Parser(
        "plan",
        __doc__,
        {
            "plan suite=demo": "what `run suite=demo` would do, and why",
            "plan suite=releases budget.max_minutes=10": "what ten minutes would have to leave out",
            "plan suite=demo --cfg job --package suite": "what the suite says, all composed",
        },
    ).overrides()


def main(words: Sequence[str]) -> int:
    _, hydras = parser().for_hydra(words)
    console = screen()
    configs = compose(hydras)
    if not configs:
        return SHIPS
    cells = cells_of(configs)
    reused = _reused(cells, configs[0], partial(console.print, highlight=False, markup=False))
    earlier = history.read(Path(configs[0].runs))
    nodes = nodes_of(configs[0].cluster)
    wait = configs[0].wait_s is not None
    plan = make_plan(cells, nodes, earlier.memory_gib(cells), wait=wait)
    todo = dataclasses.replace(plan, runnable=reused.left(plan.runnable))
    costs = earlier.work(todo.runnable)
    fitted = budget.within(todo, costs, configs[0].budget, nodes, known=[*reused.kept])
    work = {cell.id: costs[cell.id] for cell in fitted.chosen}
    grid = Table("cell", "goes to", "check", "s", "GiB", box=None)
    for cell in cells:
        needs = plan.needs.get(cell.id)
        grid.add_row(
            cell.id,
            _destiny(cell, plan, reused, fitted),
            cell.check,
            f"{seconds:.1f}" if (seconds := earlier.seconds_of(cell)) is not None else "?",
            f"{needs.memory_gib:.1f}" if needs else "-",
        )
    console.print(grid)
    for line in _summary(cells, plan, reused, fitted, work):
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


def _destiny(cell: Cell, plan: Plan, reused: Reuse, fitted: Fitted) -> Text:
    if record := reused.kept.get(cell.id):
        return Text(f"{record.verdict}, kept from {record.kept_from or 'the same run'}", "dim")
    if obstacle := plan.unplaceable.get(cell.id) or fitted.left_out.get(cell.id):
        return Text(obstacle, "yellow")
    where = ", ".join(plan.hosts[cell.id]) or f"waits, since there is {plan.missing[cell.id]}"
    return Text(f"{where}: {reused.why[cell.id]}")


def _summary(
    cells: Sequence[Cell], plan: Plan, reused: Reuse, fitted: Fitted, work: Mapping[str, Work]
) -> Iterator[str]:
    wall_s = Forecast(work, at_once=plan.at_once).left_s({})
    engine_s = sum(each.seconds for each in work.values())
    gpu_s = sum(plan.needs[cell_id].all_devices * each.seconds for cell_id, each in work.items())
    unplaceable = len(plan.unplaceable.keys() - reused.kept.keys())
    yield (
        f"{len(plan.runnable)} of {len(cells)} cells can run; {len(reused.kept)} keep their "
        f"verdict, {len(work)} run, {unplaceable} can't"
    )
    for reason, count in Counter(fitted.left_out.values()).items():
        yield f"{count} {'is' if count == 1 else 'are'} {reason}"
    yield (
        f"about {duration(wall_s)}, {plan.at_once} at once, with {duration(engine_s)} of "
        f"engine time and {duration(gpu_s)} of GPU time"
    )
