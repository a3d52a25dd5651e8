"""A stand-in for the probe's cell: real hosts and processes, and no engine in them."""

import hashlib
import json
import pickle
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from jobs.contract.asked import CellRequest, Deadlines, ProbeRequest
from jobs.contract.attempts import Placement
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.terms import Check, Isolation
from jobs.node import run_cell

ROOT = Path(__file__).parents[2]
# Not the tests' own, in which everything of ours can be imported.
PYTHON = str(Path(sys.base_prefix, "bin", "python3"))
PLACEMENT = Placement(node="here")

# Found before the real package, which it goes on to.
_EXTENDED_PACKAGE = """
from pkgutil import extend_path
__path__ = extend_path(__path__, __name__)
"""

_CELL = """
import json, os, signal, subprocess, sys, time

def preload():
    exec(os.environ.get("STANDIN_PRELOAD", ""))

def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])

def run(request_file, report_file):
    request = json.loads(request_file.read_text())
    def report(**seen):
        whose = {name: request[name] for name in ("cell_id", "attempt", "contract_version")}
        report_file.write_text(json.dumps(whose | {"failure": None} | seen))
    keeper = os.getppid()
    given = {"report": report, "folder": report_file.parent, "seat": request["seat"]}
    given |= {"keeper": keeper, "host": parent(keeper)}
    exec(request["engine_args"]["code"], globals() | given)
"""


def install(folder: Path) -> None:
    probe = folder / "jobs" / "probe"
    probe.mkdir(parents=True)
    for package in (probe.parent, probe):
        (package / "__init__.py").write_text(_EXTENDED_PACKAGE)
    (probe / "cell.py").write_text(_CELL)


def a_request(  # noqa: PLR0913 - a test names only what it is about
    folder: Path,
    code: str,
    *,
    number: int = 1,
    isolation: Isolation = Isolation.WARM,
    deadline_s: float = 20.0,
    python: str = PYTHON,
    env: dict[str, str] | None = None,
) -> CellRequest:
    """For a cell whose probe runs *code*, which may call `report(**seen)`."""
    standin = folder / "standin"
    if not standin.exists():
        install(standin)
    return CellRequest(
        probe=ProbeRequest(
            cell_id=f"cell-{number}",
            attempt=1,
            check=Check.INIT,
            engine_args={"code": textwrap.dedent(code)},
        ),
        build=ProvisionedBuild(
            name="standin",
            digest=hashlib.sha256(str(folder).encode()).hexdigest(),
            python=python,
            path_entries=(str(standin),),
            vllm_version="0",
            torch_version="0",
        ),
        env=env or {},
        isolation=isolation,
        deadlines=Deadlines(attempt_s=deadline_s, quiet_s=deadline_s),
        workdir=str(folder / "cells" / str(number)),
        cache=str(folder / "cache"),
    )


def run(request: CellRequest) -> dict[str, Any]:
    attempt: dict[str, Any] = json.loads(run_cell.run_cell(request, PLACEMENT))
    return attempt


def a_caller(request: CellRequest) -> subprocess.Popen[bytes]:
    """Another process that runs the cell, can be killed, and leaves what it got as attempt.json."""
    return subprocess.Popen([sys.executable, "-c", CALLER, packed(request)], cwd=ROOT)


def a_raylet(request: CellRequest) -> subprocess.Popen[bytes]:
    """The parent of such a caller."""
    return subprocess.Popen([sys.executable, "-c", _RAYLET, packed(request)], cwd=ROOT)


CALLER = """
import pathlib, pickle, sys
from jobs.node.run_cell import run_cell
request, placement = pickle.loads(bytes.fromhex(sys.argv[1]))
pathlib.Path(request.workdir, "attempt.json").write_text(run_cell(request, placement))
"""

_RAYLET = f"""
import subprocess, sys
subprocess.call([sys.executable, "-c", {CALLER!r}, sys.argv[1]])
"""


def packed(request: CellRequest) -> str:
    return pickle.dumps((request, PLACEMENT)).hex()


def eventually(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    until = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def lies_in(request: CellRequest, name: str) -> Path:
    """A file that the cell makes, once it is there and not empty."""
    file = Path(request.workdir, name)
    assert eventually(lambda: file.exists() and file.read_text() != "")
    return file


def runs(pid: int) -> bool:
    """Whether there is such a process, other than a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def started_for(folder: Path) -> list[psutil.Process]:
    """Hosts, and what they forked, of requests below *folder*."""
    return [process for process in psutil.process_iter() if str(folder) in _python_path(process)]


def _python_path(process: psutil.Process) -> str:
    try:
        return process.environ().get("PYTHONPATH", "")
    except psutil.Error:
        return ""
