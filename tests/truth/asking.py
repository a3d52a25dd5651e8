"""Ask a build of vLLM the question of every row, each on the emulated card that it is about."""

import itertools
import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from jobs.contract.asked import CellRequest
from jobs.contract.builds import ProvisionedBuild
from jobs.node import environment
from jobs.node.builds.provision import provision
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import expand
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from tests.truth.hosts import Host
from tests.truth.rows import Row

ROOT = Path(__file__).parents[2]
BUILD = "v0_32_gpu"
RELEASE = "0.32.0"

Answers = dict[str, dict[str, Any]]
"""By the row's id; see `jobs.probe.emulation.ask.Answer`."""


def answers(rows: Iterable[Row], folder: Path, *words: str) -> Answers:
    """*words* go on the configuration, such as a patch for the build."""
    requests = _requests({row.card for row in rows}, folder, *words)
    ordered = sorted(rows, key=attrgetter("card", "environment"))
    groups = [
        list(group) for _, group in itertools.groupby(ordered, attrgetter("card", "environment"))
    ]
    hosts = [
        Host(
            env=_env(requests[group[0].card], group[0]),
            questions=[row.question for row in group],
            answers=str(folder / f"{number}.json"),
        )
        for number, group in enumerate(groups)
    ]
    _run(hosts, next(iter(requests.values())).build, folder)
    return {
        row.id: answer
        for group, host in zip(groups, hosts, strict=True)
        for row, answer in zip(group, _read(host, folder), strict=True)
    }


def _requests(cards: Iterable[str], folder: Path, *words: str) -> dict[str, CellRequest]:
    """What the orchestrator would send to a node for some cell on each of the cards."""
    [config] = compose(
        [
            f"hardware=[{','.join(sorted(cards))}]",
            "model=[llama31_8b]",
            "backend=[auto]",
            f"build=[{BUILD}]",
            "engine_mode=emulated",
            "suite.check=init",
            *words,
        ]
    )
    specs = build_specs(config)
    build = provision(specs[BUILD], Path(config.cache), print)
    return {
        cell.axis("hardware"): cell_request(
            cell, build, attempt=1, workdir=str(folder), cache=config.cache
        )
        for cell in expand(config, specs)
    }


def _env(request: CellRequest, row: Row) -> dict[str, str]:
    return environment.of_host(replace(request, env={**request.env, **row.env}))


def _run(hosts: Sequence[Host], build: ProvisionedBuild, folder: Path) -> None:
    file = folder / "hosts.json"
    file.write_text(json.dumps([asdict(host) for host in hosts]))
    with (folder / "log").open("w") as log:
        subprocess.run(
            [build.python, "-m", "tests.truth.hosts", str(file)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
            check=True,
        )


def _read(host: Host, folder: Path) -> list[dict[str, Any]]:
    file = Path(host.answers)
    if not file.exists():
        log = (folder / "log").read_text(errors="replace")
        raise AssertionError(f"a host has no answers; the end of the log:\n{log[-3000:]}")
    answers: list[dict[str, Any]] = json.loads(file.read_text())
    return answers
