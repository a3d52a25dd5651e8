"""Run a suite, or the cells that the words choose; `-m` sweeps into one matrix."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from orchestrator import reports
from orchestrator.asked.compose import compose
from orchestrator.commands import ending
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import BLOCKED, SHIPS
from orchestrator.remote.sent_progress import PARCELS, SentProgress
from orchestrator.run import validate
from orchestrator.running.progress import ConsoleProgress, Progress


def parser() -> Parser:
    return Parser(
        "run",
        __doc__,
        {
            "run suite=demo": "a suite: one of the files in conf/suite",
            "run 'hardware=[cpu]' 'model=[llama,gemma3]' 'backend=[auto]' 'build=[v0_32]'": (
                "every combination of lists"
            ),
            "run -m hardware=cpu model=llama,gemma3 backend=auto build=v0_32": "the same matrix",
            "run suite=demo 'suite.select=[\"*/llama/*\"]' suite.check=init": "any key",
            "run suite=mine --config-dir my-conf": "files of your own beside conf/",
        },
    ).overrides()


def main(words: Sequence[str]) -> int:
    _, hydras = parser().for_hydra(words)
    configs = compose(hydras)
    if not configs:
        return SHIPS
    if configs[0].cluster.jobs_api and not _was_submitted():
        from orchestrator.commands.submit import submit

        return submit(hydras, configs)
    # Ray takes a second to import, and a mistake in the words should not.
    from orchestrator.running.on_ray.cluster import RayCluster

    with _progress() as progress:
        run = validate(configs, hydras, RayCluster, progress)
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
