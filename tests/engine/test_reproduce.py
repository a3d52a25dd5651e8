"""Scripts for others, run as they would run them, with real engines."""

import dataclasses
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.seen import ProbeReport
from jobs.node import caches
from jobs.node.builds.provision import provision
from orchestrator.__main__ import answer
from orchestrator.asked.cells import Cell
from orchestrator.asked.compose import compose
from orchestrator.asked.policies import Gate
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from orchestrator.kept.run_directory import Asked, claimed
from orchestrator.run import cells_of
from tests.builders import a_report, an_attempt, groups

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

CPU = "vllm.v1.attention.backends.cpu_attn.CPUAttentionBackend"
FLASH = "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"


def a_run(words: list[str], report: ProbeReport) -> Cell:
    """Of one cell, with what an earlier try is said to have seen."""
    configs = compose(words)
    [cell] = cells_of(configs)
    asked = Asked(suite="cells", command=tuple(words), gate=Gate(), cells=(cell,))
    build = provision(cell.build, caches.folder(configs[0].cache), print)
    attempt = an_attempt(report, cell_id=cell.id)
    judgement = judge(cell, build, attempt)
    with claimed(Path("runs"), asked, today=date(2026, 12, 3)) as (run, _):
        run.records.append(
            Record(cell_id=cell.id, build=build, attempt=attempt, judgement=judgement)
        )
    return cell


def of_class(path: str, **more: Any) -> Any:
    [group] = groups("X")
    return (dataclasses.replace(group, class_path=path, **more),)


def shown(cell: Cell, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    assert answer(["reproduce", "latest", cell.id, "-o", "show.sh"]) == 0
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "show.sh", str(folder)],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        | {"PATH": tools, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_plain_vllm_shows_the_backend_that_was_asked_for_and_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vllm_python: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["hardware=[cpu]", "model=[llama]", "backend=[triton_attn]", "build=[v0_32]"]
    cell = a_run(words, a_report(target=of_class(CPU)))

    ran = shown(cell, tmp_path / "there", PYTHON=str(vllm_python))

    assert "asked: {'target.attention_backend': 'TRITON_ATTN'}" in ran.stdout
    assert f"target attention: {CPU}" in ran.stdout
    assert "the same as vllm-matrix saw" in ran.stdout
    assert ran.returncode == 0


def test_a_patch_is_in_the_vllm_that_is_asked_and_not_in_that_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vllm_python: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["hardware=[cpu]", "model=[llama]", "backend=[triton_attn]", "build=[v0_32_strict_cpu]"]
    cell = a_run(words, a_report(target=of_class(CPU)))

    ran = shown(cell, tmp_path / "there", PYTHON=str(vllm_python))

    # The record says that it ran.
    assert "the CPU platform cannot use it here. Valid backends: CPU_ATTN." in ran.stdout
    assert ran.returncode == 1
    site = next(vllm_python.parents[1].glob("lib/*/site-packages/vllm/platforms/cpu.py"))
    assert "cannot use it here" not in site.read_text()


@pytest.mark.long
def test_the_emulation_that_a_script_carries_is_all_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ["hardware=[h100]", "model=[llama31_8b]", "backend=[auto]", "build=[v0_32_gpu]"]
    words = [*chosen, "engine_mode=emulated", "suite.check=init"]
    report = a_report(target=of_class(FLASH, backend="FLASH_ATTN", layers=32), runner="V2")
    cell = a_run(words, report)
    cache = caches.folder(compose(words)[0].cache)

    ran = shown(cell, tmp_path / "there", PYTHON=sys.executable, CACHE=str(cache))

    assert f"target: FLASH_ATTN ({FLASH}), 32 layers" in ran.stdout
    assert "the same as vllm-matrix saw" in ran.stdout
    assert ran.returncode == 0
