"""Come back to a run that was submitted to a cluster, or to what it left."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from orchestrator.commands.screen import screen
from orchestrator.commands.submit import follow
from orchestrator.remote import submissions


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("vllm-matrix attach", description=__doc__)
    parser.add_argument("submission", nargs="?", help="its id; without it, the newest from here")
    parser.add_argument("--address", help="URL of the cluster's dashboard, if it is another now")
    parser.add_argument("--runs", default="runs", help="the folder that runs are kept in here")
    chosen = parser.parse_args(words)
    runs = Path(chosen.runs)
    submission = submissions.remembered(runs, chosen.submission, chosen.address)
    say = partial(screen().print, style="dim", highlight=False, markup=False)
    return follow(submission, runs, say)
