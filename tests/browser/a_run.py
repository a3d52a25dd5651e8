"""A small run with one cell of each kind, some of whose text means harm."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.contract.builds import ProvisionedBuild
from jobs.contract.seen import PhaseTime, ProbeReport, Rejection, Selection
from jobs.contract.terms import Phase
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked as Wish
from orchestrator.asked.config import Expectation
from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from orchestrator.kept.run_directory import Asked, RunDirectory
from orchestrator.reports import write_all
from tests.builders import (
    EAGLE3,
    H100,
    MI300X,
    a_build,
    a_cell,
    a_failed_report,
    a_report,
    an_attempt,
    groups,
)

HARM = "</script><script>window.harm = 1</script><img src=x onerror='window.harm = 2'>"
VERSIONS = {"old": "0.28.0", "new": "0.32.0"}
TRITON = Wish(attention_backend="TRITON_ATTN")
REFUSED = Expectation(outcome=("refused",))
WAIVER = Waiver(cells="mi300x/*/old", category="silent_fallback", reason="known", owner="me")

DROPPED = "h100/eagle3/draft_triton/old"
BROKEN = "h100/llama/broken/new"
LOST = "mi300x/llama/lost/new"


def write(folder: Path, builds: Iterable[str] = tuple(VERSIONS)) -> Path:
    """Its page."""
    run = RunDirectory(folder)
    tried = [tried_cell for build in builds for tried_cell in _tried(build)]
    lost = a_cell(LOST, hardware=MI300X)
    cells = (*(cell for cell, _ in tried), lost)
    run.note(
        Asked(suite="small", command=("suite=small",), gate=Gate(waivers=(WAIVER,)), cells=cells)
    )
    run.records.append(*(_record(run, cell, report) for cell, report in tried))
    write_all(run)
    return folder / "matrix.html"


def _tried(build: str) -> list[tuple[Cell, ProbeReport]]:
    new = build == "new"
    tried: list[tuple[Cell, ProbeReport]] = []
    for card, hardware in {"h100": H100, "mi300x": MI300X}.items():
        draft = a_cell(
            f"{card}/eagle3/draft_triton/{build}",
            hardware=hardware,
            draft=TRITON,
            speculative=EAGLE3,
        )
        got = groups("TRITON_ATTN" if new else "FLASH_ATTN")
        plain = a_cell(f"{card}/llama/auto/{build}", hardware=hardware)
        tried += [(draft, _runs(draft=got)), (plain, _runs(runner="V2" if new else "V1"))]
    broken = a_cell(f"h100/llama/broken/{build}", hardware=H100)
    unknown = a_cell(f"h100/llama/unknown/{build}", hardware=H100, target=TRITON, expect=REFUSED)
    return [
        *tried,
        (broken, a_failed_report(f"it broke {HARM}", type_="OSError") if new else _runs()),
        (unknown, a_failed_report("Unknown attention backend: 'x'. Valid options are: A")),
    ]


def _runs(**more: Any) -> ProbeReport:
    return replace(
        a_report(**more),
        target=groups("FLASH_ATTN"),
        phases=tuple(PhaseTime(phase=phase, seconds=0.25) for phase in (Phase.CONFIG, Phase.LOAD)),
        rejections=(
            Rejection(
                backend="FLEX_ATTENTION", reasons=("MLA not supported",), said_by="validation"
            ),
        ),
        selections=(
            Selection(asked=None, question={"head_size": "128"}, accepted=("A", "B"), rejected=()),
        ),
    )


def _record(run: RunDirectory, cell: Cell, report: ProbeReport) -> Record:
    folder = run.cells / cell.id / "1"
    folder.mkdir(parents=True)
    log = folder / "probe.log"
    log.write_text(f"the first line\n{HARM}\n\x1b[31mthe last line\x1b[0m\n")
    attempt = an_attempt(report, cell_id=cell.id, seconds=2.0 + len(cell.id) / 10)
    attempt = replace(attempt, log=str(log))
    build = _build(cell.build.name)
    return Record(
        cell_id=cell.id, build=build, attempt=attempt, judgement=judge(cell, build, attempt)
    )


def _build(name: str) -> ProvisionedBuild:
    return a_build(name, digest=f"digest of {name}", vllm_version=VERSIONS[name])
