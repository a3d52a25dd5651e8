"""What a cell reports depends neither on how it was started nor on the cells before it."""

import dataclasses
import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from jobs import processes
from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Placement
from jobs.contract.builds import Patch
from jobs.contract.terms import Isolation
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell
from jobs.probe.environment import PROBE_FOLDER
from orchestrator.asked import cells
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

HERE = Path(__file__).parent
LOOK, DIRT = HERE / "scripts" / "look.py", HERE / "scripts" / "dirt.py"
RUNS_A_SCRIPT = HERE / "runs-a-script.diff"

SCRIPT, SIGNAL = "MATRIX_SCRIPT", "MATRIX_SIGNAL"
"""Of the cell's environment: a script to run before the model is loaded, and how it then ends."""

OF_ONE_ATTEMPT = {"pid", "phases"}

OF_ONE_CELL = ("TMPDIR", PROBE_FOLDER, processes.MARKER, "VLLM_DIST_IDENT")
"""Variables whose values are ids and folders of the cell; the last one is made by vLLM."""

Cells = dict[str, CellRequest]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """Of a build that runs scripts. One is ready and fails in its first step, one is killed."""
    found = _requests(
        tmp_path_factory.mktemp("real"),
        "hardware=[cpu]",
        "model=[llama,gemma3,llama_eagle3,llama_eagle3_short]",
        "backend=[auto]",
        "build=[v0_32]",
        patch=Patch(name=RUNS_A_SCRIPT.name, text=RUNS_A_SCRIPT.read_text()),
    )
    home = {"HOME": str(tmp_path_factory.mktemp("home"))}
    at_home = {name: _with(request, home) for name, request in found.items()}
    [llama, *_] = at_home.values()
    return {**at_home, "killed": _with(llama, _dirt(signal.SIGSEGV))}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """One of them fails, since its backend does not take the card's layouts."""
    return _requests(
        tmp_path_factory.mktemp("emulated"),
        "hardware=[mi300x]",
        "model=[llama31_8b_eagle3]",
        "backend=[auto,v1_flex_attention]",
        "build=[v0_32_gpu]",
        "engine_mode=emulated",
    )


def test_real_cells_report_the_same_warm_cold_and_in_any_order(real: Cells) -> None:
    assert _reports_of_any_order(real)["killed"]["exit"]["signal"] == signal.SIGSEGV


def test_emulated_cells_report_the_same_warm_cold_and_in_any_order(emulated: Cells) -> None:
    refused, ready = sorted(_reports_of_any_order(emulated).values(), key=_is_ready)
    assert ready["report"]["ready"]
    assert refused["report"]["failure"]


@pytest.mark.parametrize("number", [None, signal.SIGSEGV], ids=["and ends well", "and crashes"])
def test_what_one_cell_does_to_its_process_and_caches_no_other_sees(
    real: Cells, number: signal.Signals | None
) -> None:
    [llama, *_] = real.values()
    before = _look(llama)

    attempt = _attempt(_with(llama, _dirt(number)))

    dirt = Path(llama.env["HOME"], ".cache", "vllm", "left-by-a-cell")
    dirt.unlink()  # it was there
    assert attempt["exit"]["signal"] == number
    assert _look(llama) == before


def _requests(folder: Path, *words: str, patch: Patch | None = None) -> Cells:
    check = "init" if "engine_mode=emulated" in words else "generate"
    [config] = compose([*words, f"suite.check={check}"])
    specs = build_specs(config)
    [(name, spec)] = specs.items()
    patched = dataclasses.replace(spec, patches=() if patch is None else (patch,))
    build = provision(patched, Path(config.cache), print)
    return {
        cell.id: cell_request(cell, build, attempt=1, workdir=str(folder), cache=config.cache)
        for cell in cells.expand(config, {name: patched})
    }


def _is_ready(attempt: dict[str, Any]) -> bool:
    ready: bool = attempt["report"]["ready"]
    return ready


def _dirt(number: signal.Signals | None) -> dict[str, str]:
    return {SCRIPT: str(DIRT)} | ({} if number is None else {SIGNAL: str(int(number))})


def _with(request: CellRequest, env: dict[str, str]) -> CellRequest:
    return dataclasses.replace(request, env={**request.env, **env})


def _reports_of_any_order(requests: Cells) -> dict[str, dict[str, Any]]:
    """By cell, once it is seen that they are always the same."""
    warm = {name: _lasting(_attempt(request)) for name, request in requests.items()}
    shuffled = random.sample(list(requests), len(requests))
    print("shuffled:", *shuffled)  # noqa: T201 - to try it again
    assert {name: _lasting(_attempt(requests[name])) for name in shuffled} == warm
    cold = {
        name: _lasting(_attempt(dataclasses.replace(request, isolation=Isolation.COLD)))
        for name, request in requests.items()
    }
    assert cold == warm
    return warm


def _attempt(request: CellRequest) -> dict[str, Any]:
    """In a folder of its own; all are the same attempt to the cell."""
    parent = Path(request.workdir)
    parent.mkdir(exist_ok=True)
    folder = parent / str(len(list(parent.iterdir())))
    moved = dataclasses.replace(request, workdir=str(folder))
    attempt: dict[str, Any] = json.loads(run_cell(moved, Placement(node="here")))
    return {**attempt, "folder": str(folder)}


def _lasting(attempt: dict[str, Any]) -> dict[str, Any]:
    """What may not differ: all but times and ids."""
    report = {k: v for k, v in (attempt["report"] or {}).items() if k not in OF_ONE_ATTEMPT}
    phases = [timed["phase"] for timed in (attempt["report"] or {"phases": []})["phases"]]
    return {"exit": attempt["exit"], "phase": attempt["phase"], "phases": phases, "report": report}


def _look(request: CellRequest) -> dict[str, Any]:
    """What a cell finds in its process and caches."""
    attempt = _attempt(_with(request, {SCRIPT: str(LOOK)}))
    text = Path(attempt["folder"], "seen.json").read_text()
    seen: dict[str, Any] = json.loads(text)
    own = {name: seen["environment"][name] for name in OF_ONE_CELL}
    for name, value in own.items():
        text = text.replace(value, name)
    cleaned: dict[str, Any] = json.loads(text)
    return cleaned
