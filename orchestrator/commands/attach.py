"""Come back to a run that was submitted to a cluster, or to what it left."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.commands.submit import follow
from orchestrator.remote import submissions


def parser() -> Parser:
    words = Parser("attach", __doc__, {"attach": "the newest run that was submitted from here"})
    words.add_argument(
        "submission", nargs="?", metavar="SUBMISSION", help="its id; without it, the newest"
    )
    words.add_argument(
        "--address", metavar="URL", help="of the cluster's dashboard, if it is another now"
    )
    words.add_argument("--runs", metavar="FOLDER", default="runs", help="where runs are kept here")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    runs = Path(chosen.runs)
    submission = submissions.remembered(runs, chosen.submission, chosen.address)
    say = partial(screen().print, style="dim", highlight=False, markup=False)
    return follow(submission, runs, say)
