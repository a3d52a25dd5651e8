"""What a node does for one cell."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from jobs.contract import Attempt, CellRequest, Exit, Placement
from jobs.node import cell_files
from jobs.node.cell_files import CellFiles
from jobs.node.errors import NodeError
from jobs.node.probing import Outcome, probe


def run_cell(request: CellRequest, placement: Placement) -> str:
    """
    Try the cell, and return an `Attempt` as JSON, whatever the probe does.

    Raises NodeError when this node is to blame.
    """
    files = CellFiles(folder=Path(request.workdir).absolute())
    try:
        files.prepare(request.probe)
        outcome = probe(request, files)
        return _attempt(request, placement, files, outcome)
    except OSError as error:
        raise NodeError(f"{type(error).__name__}: {error}") from error


def _attempt(request: CellRequest, placement: Placement, files: CellFiles, outcome: Outcome) -> str:
    report, notes = _report(files)
    attempt = Attempt(
        cell_id=request.probe.cell_id,
        number=request.probe.attempt,
        placement=placement,
        isolation=request.isolation,
        exit=outcome.exit,
        phase=outcome.phase,
        seconds=round(outcome.seconds, 3),
        log=str(files.log),
        log_tail=""
        if _is_fine(outcome, report)
        else "\n".join([cell_files.tail(files.log), *outcome.notes, *notes]).strip(),
        processes_killed=outcome.killed,
    )
    # The orchestrator rebuilds the report, and checks it; a node passes it on as it is.
    return json.dumps(dataclasses.asdict(attempt) | {"report": report}, indent=1)


def _report(files: CellFiles) -> tuple[dict[str, Any] | None, list[str]]:
    try:
        report = files.read_report()
    except ValueError as error:
        report, notes = None, [f"{files.report.name} is not a report: {error}"]
    else:
        notes = []
    if report is None and _is_full(files.folder):
        raise NodeError(f"no space is left for what probes write to {files.folder}")
    return report, notes


def _is_full(folder: Path) -> bool:
    return os.statvfs(folder).f_bavail == 0


def _is_fine(outcome: Outcome, report: dict[str, Any] | None) -> bool:
    ended_well = outcome.exit == Exit(code=0)
    return ended_well and report is not None and report.get("failure") is None
