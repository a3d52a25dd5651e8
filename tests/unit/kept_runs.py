"""Runs on disk, as a real one leaves them, made of what some test is about."""

import json
from collections.abc import Sequence
from pathlib import Path

from jobs.contract.seen import ProbeReport
from orchestrator.asked.cells import Cell
from orchestrator.asked.policies import Gate
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from orchestrator.kept.run_directory import Asked, RunDirectory
from tests.builders import a_build, an_attempt


def a_run(  # noqa: PLR0913  # each is what some test is about
    name: str,
    found: Sequence[tuple[Cell, ProbeReport | None]],
    *,
    runs: Path = Path("runs"),
    gate: Gate | None = None,
    version: str = "0.32.0",
    shipped: bool | None = None,
) -> RunDirectory:
    """None as a report: the cell was not run."""
    run = RunDirectory(runs / name)
    run.path.mkdir(parents=True)
    suite = name.split("-", 3)[3]
    asked = Asked(
        suite=suite, command=(), gate=gate or Gate(), cells=tuple(cell for cell, _ in found)
    )
    run.note(asked)
    run.stand_last()
    for cell, report in found:
        if report is not None:
            run.records.append(_record(cell, report, version))
    if shipped is not None:
        run.write("summary.json", json.dumps({"gate": {"ships": shipped}}))
    return run


def _record(cell: Cell, report: ProbeReport, version: str) -> Record:
    build = a_build(cell.build.name, vllm_version=version)
    attempt = an_attempt(report, cell_id=cell.id)
    judgement = judge(cell, build, attempt)
    return Record(cell_id=cell.id, build=build, attempt=attempt, judgement=judgement)
