"""Run a suite, or the cells that the words choose; `-m` sweeps into one matrix."""

from collections.abc import Sequence

from orchestrator import reports
from orchestrator.asked.compose import compose
from orchestrator.commands.screen import screen
from orchestrator.errors import BLOCKED, SHIPS
from orchestrator.reports import terminal
from orchestrator.run import validate
from orchestrator.running.progress import ConsoleProgress


def main(words: Sequence[str]) -> int:
    console = screen()
    configs = compose(words)
    if not configs:
        return SHIPS
    # Ray takes a second to import, and a mistake in the words should not.
    from orchestrator.running.on_ray.cluster import RayCluster

    with ConsoleProgress(console) as progress:
        run = validate(configs, words, RayCluster, progress)
    result = reports.write_all(run)
    console.print()
    console.print(terminal.render(reports.document_of(run, result)))
    console.print(str(run.path), style="dim", highlight=False, markup=False)
    return SHIPS if result.decision.ships else BLOCKED
