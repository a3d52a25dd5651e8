"""Run on a cluster what the words say, by way of its Jobs API; follow it, and keep its run here."""

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from orchestrator.asked.compose import compose
from orchestrator.asked.config import Config
from orchestrator.commands.screen import screen
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.remote.submissions import Submission
from orchestrator.run import cells_of


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("vllm-matrix submit", description=__doc__, add_help=False)
    parser.add_argument("--address", default=os.environ.get("RAY_API_SERVER_ADDRESS"))
    chosen, rest = parser.parse_known_args(words)
    configs = compose(rest)
    if not configs:
        return SHIPS
    return submit(rest, configs, chosen.address)


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
    return following.exit_code(job)
