"""
Many emulated cards answer their questions: `python -m tests.truth.hosts HOSTS`.

What does not depend on the card is imported once; each card is then a fork, two at a
time. *HOSTS* is a JSON list, see `Host`. It runs in vLLM's environment, not in pytest's.
"""

import importlib
import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

AT_ONCE = 2

COMMON = (
    "aiohttp",
    "fastapi",
    "networkx",
    "openai.types.chat",
    "openai.types.responses",
    "sympy",
    "torch._dynamo",
    "torch._inductor.config",
    "transformers.models.auto",
    "transformers.processing_utils",
    "xgrammar",
)
"""Half of what a host takes to start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    env: dict[str, str]
    """As `jobs.node.environment` makes it for a host of the card."""

    questions: list[dict[str, Any]]
    """See `jobs.probe.emulation.ask`."""

    answers: str
    """The file to write them to, as a JSON list in the same order."""


def main(hosts: Path) -> None:
    for name in COMMON:
        importlib.import_module(name)
    running = 0
    for host in [Host(**raw) for raw in json.loads(hosts.read_text())]:
        if running == AT_ONCE:
            os.wait()
            running -= 1
        if os.fork() == 0:
            _answer(host)
        running += 1
    for _ in range(running):
        os.wait()


def _answer(host: Host) -> None:
    """As a process of its own, which ends here. Without its file it has failed."""
    try:
        os.environ.update(host.env)
        sys.path[:0] = host.env["PYTHONPATH"].split(os.pathsep)
        Path(host.answers).write_text(json.dumps(_answers(host.questions)))
    # Whatever it is, the parent's loop must not go on in this process.
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def _answers(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from jobs.probe import environment
    from jobs.probe.emulation import ask, start

    environment.prepare()
    start.install()
    return [asdict(ask.ask(question)) for question in questions]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
