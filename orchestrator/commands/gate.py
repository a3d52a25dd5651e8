"""May the release that a run looked at ship? Exits with 0 or 1."""

import argparse
from collections.abc import Sequence

from rich.console import Console

from orchestrator.errors import BLOCKED, SHIPS
from orchestrator.kept.run_directory import find
from orchestrator.run import conclude


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("vllm-matrix gate", description=__doc__)
    parser.add_argument("run", help="a run directory, its name, or `latest`")
    chosen = parser.parse_args(words)
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    decision = conclude(find(chosen.run)).decision
    console.print(decision.sentence())
    if decision.demonstration is not None:
        console.print(f"  {decision.demonstration.sentence()}")
        for reason in decision.demonstration.reasons:
            console.print(f"    {reason}")
        for regression in decision.demonstration.regressions:
            console.print(f"  regressed {regression.cell_id}: {regression.reason}")
    for blocker in decision.blockers:
        console.print(f"  {blocker.cell_id}: {blocker.verdict}: {blocker.reason}")
    for waived in decision.waived:
        console.print(f"  waived {waived.cell_id} ({waived.category}): {waived.waiver.reason}")
    for waiver in decision.expired:
        console.print(f"  the waiver of {waiver.cells} ({waiver.owner}) ended on {waiver.expires}")
    return SHIPS if decision.ships else BLOCKED
