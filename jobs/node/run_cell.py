"""What a node does for one cell."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Attempt, Exit, Placement
from jobs.node import cell_files, environment
from jobs.node.cell_files import CellFiles
from jobs.node.errors import NodeError
from jobs.node.probing import Outcome, probe
from jobs.node.tether import ALONE, Tether
from jobs.secrets import Redactor, redactor


def run_cell(request: CellRequest, placement: Placement, tether: Tether = ALONE) -> str:
    """
    Try the cell, and return an `Attempt` as JSON, whatever the probe does. *tether* ties it to
    its other parts, if it has such.

    Raises NodeError when this node is to blame.
    """
    files = CellFiles(folder=Path(request.workdir).absolute())
    try:
        hidden = _hidden(request)
        files.prepare(request.probe, hidden)
        outcome = probe(request, files, hidden, tether)
        gone = files.redact(hidden)
        outcome = dataclasses.replace(outcome, notes=(*outcome.notes, *gone))
        return _attempt(request, placement, files, outcome, tether)
    except OSError as error:
        raise NodeError(f"{error.filename or files.folder}: {error.strerror}") from error


def _hidden(request: CellRequest) -> Redactor:
    holders = {
        "environment": environment.of_host(request),
        "asked": request.env,
        "arguments": request.probe.engine_args,
    }
    return redactor(holders, request.secrets, [request.probe.cell_id])


def _attempt(
    request: CellRequest,
    placement: Placement,
    files: CellFiles,
    outcome: Outcome,
    tether: Tether,
) -> str:
    report, notes = _report(files, request)
    is_fine = _is_fine(outcome, report)
    if is_fine:
        tether.done()
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
        if is_fine
        else "\n".join([cell_files.tail(files.log), *outcome.notes, *notes]).strip(),
        waiting=outcome.waiting,
        memory_mib=outcome.memory_mib,
        processes_killed=outcome.killed,
    )
    # The orchestrator rebuilds the report, and checks it; a node passes it on as it is.
    return json.dumps(dataclasses.asdict(attempt) | {"report": report}, indent=1)


def _report(files: CellFiles, request: CellRequest) -> tuple[dict[str, Any] | None, list[str]]:
    try:
        report = files.read_report()
        if report is not None:
            _check_whose(report, request)
    except ValueError as error:
        return None, [f"{files.report.name} is not a report: {error}"]
    if report is None and _is_full(files.folder):
        raise NodeError(f"{files.folder}: no space is left for what probes write")
    return report, []


def _check_whose(report: dict[str, Any], request: CellRequest) -> None:
    """Engines run code of others, which may write anywhere."""
    probe = request.probe
    expected = {
        "cell_id": probe.cell_id,
        "attempt": probe.attempt,
        "contract_version": probe.contract_version,
    }
    for name, value in expected.items():
        if report.get(name) != value:
            raise ValueError(f"its {name} is {report.get(name)!r} instead of {value!r}")


def _is_full(folder: Path) -> bool:
    try:
        return os.statvfs(folder).f_bavail == 0
    except (FileNotFoundError, NotADirectoryError):  # the cell removed it
        return False


def _is_fine(outcome: Outcome, report: dict[str, Any] | None) -> bool:
    ended_well = outcome.exit == Exit(code=0)
    return ended_well and report is not None and report.get("failure") is None
