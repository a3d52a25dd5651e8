"""Run a suite, or the cells that the words choose; `-m` sweeps into one matrix."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from orchestrator import reports
from orchestrator.asked.compose import compose
from orchestrator.commands import ending
from orchestrator.commands.screen import screen
from orchestrator.errors import BLOCKED, SHIPS
from orchestrator.remote.sent_progress import PARCELS, SentProgress
from orchestrator.run import validate
from orchestrator.running.progress import ConsoleProgress, Progress


def main(words: Sequence[str]) -> int:
    configs = compose(words)
    if not configs:
        return SHIPS
    if configs[0].cluster.jobs_api and not _was_submitted():
        from orchestrator.commands.submit import submit

        return submit(words, configs)
    # Ray takes a second to import, and a mistake in the words should not.
    from orchestrator.running.on_ray.cluster import RayCluster

    with _progress() as progress:
        run = validate(configs, words, RayCluster, progress)
        result = reports.write_all(run)
    ending.show(run, result)
    return SHIPS if result.decision.ships else BLOCKED


def _was_submitted() -> bool:
    return PARCELS in os.environ


@contextmanager
def _progress() -> Iterator[Progress]:
    with ConsoleProgress(screen()) as shown:
        if not _was_submitted():
            yield shown
            return
        sent = SentProgress(shown)
        try:
            yield sent
        finally:
            sent.close()
