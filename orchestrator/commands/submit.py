"""Run on a cluster what the words say, by way of its Jobs API; follow it, and keep its run here."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from orchestrator import github, reports
from orchestrator.asked.compose import compose
from orchestrator.asked.config import Config
from orchestrator.commands import annotating
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.remote.submissions import Submission
from orchestrator.run import cells_of, conclude


def parser() -> Parser:
    words = Parser(
        "submit",
        __doc__,
        {
            "submit --address http://10.0.0.1:8265 suite=demo": "by the URL of the dashboard",
            "submit cluster=staging suite=demo": "by a file in conf/cluster that has `jobs_api`",
        },
    ).overrides()
    words.add_argument(
        "--address",
        metavar="URL",
        default=os.environ.get("RAY_API_SERVER_ADDRESS"),
        help="of the cluster's dashboard; without it, RAY_API_SERVER_ADDRESS or `jobs_api`",
    )
    return words


def main(words: Sequence[str]) -> int:
    chosen, hydras = parser().for_hydra(words)
    configs = compose(hydras)
    if not configs:
        return SHIPS
    return submit(hydras, configs, chosen.address)


def submit(words: Sequence[str], configs: Sequence[Config], address: str | None = None) -> int:
    from orchestrator.remote import submitting

    cells_of(configs)
    address = address or configs[0].cluster.jobs_api
    if address is None:
        raise ConfigError(
            "no cluster is named to submit to: add --address URL of its dashboard, such as "
            "http://10.0.0.1:8265, or choose one of conf/cluster that has `jobs_api`"
        )
    say = partial(screen().print, style="dim", highlight=False, markup=False)
    submission = submitting.submitted(words, configs[0], address, say)
    return follow(submission, Path(configs[0].runs), say)


def follow(submission: Submission, runs: Path, say: Callable[[str], None]) -> int:
    from orchestrator.remote import following, submitting

    job, run = submitting.followed(submission, runs, say)
    if job is None:
        return SHIPS
    if run is not None and (run / "run.json").exists():
        say(f"all of it is in {run}")
        tell(RunDirectory(run))
    return following.exit_code(job)


def tell(run: RunDirectory) -> None:
    """Whoever submitted, and not the cluster, may be a job on GitHub."""
    if github.listens():
        annotating.tell(run, reports.document_of(run, conclude(run)))
