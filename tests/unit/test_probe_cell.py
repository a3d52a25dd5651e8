"""One cell, with a vLLM that is played by a few files: what is left behind when it fails."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.contract import terms
from jobs.contract.asked import ProbeRequest
from jobs.contract.terms import Check, EngineMode
from jobs.probe import environment, wording
from jobs.probe.notes import Notes

FAKE_VLLM = {
    "__init__.py": """
        __version__ = "1.2.3"
        class SamplingParams:
            def __init__(self, **arguments): pass
        class LLM:
            def __init__(self, **arguments):
                {start}
            def collective_rpc(self, method):
                return [{reading!r}]
            def generate(self, prompts, sampling, use_tqdm):
                {generate}
            llm_engine = property(lambda self: self)
            engine_core = property(lambda self: self)
            def shutdown(self): pass
    """,
    "logger.py": """
        DEFAULT_LOGGING_CONFIG = dict(handlers=dict(), loggers=dict(vllm=dict(handlers=[])))
    """,
    "platforms.py": "current_platform = object()",
    "v1/attention/selector.py": "def _cached_get_attn_backend(*arguments): pass",
    "v1/worker/worker_base.py": "class WorkerWrapperBase: pass",
}
"""What a probe touches of vLLM before an engine is there, and after it."""

READING = json.dumps(
    {
        "seen": {
            "rank": 0,
            "target": [
                {
                    "kv_group": 0,
                    "backend": "FLASH_ATTN",
                    "class_path": "vllm.Flash",
                    "layers": 1,
                    "layer_names": ["layer.0"],
                    "layouts": ["LBNHC"],
                }
            ],
            "draft": [],
            "target_moe": [],
            "draft_moe": [],
        },
        "device": {"name": "a card"},
        "engine": {"runner": "V2"},
        "rejections": [],
        "selections": [],
        "notes": [],
    }
)


TOKEN = "planted-secret-0123456789"


def play(
    folder: Path,
    *,
    start: str = "pass",
    generate: str = "raise SystemExit(3)",
    reading: str = READING,
) -> Path:
    """Write the play's vLLM into *folder*."""
    for name, text in FAKE_VLLM.items():
        path = folder / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.format(start=start, generate=generate, reading=reading).splitlines()
        path.write_text("\n".join(line.removeprefix("        ") for line in lines))
    return folder


def probe(
    folder: Path, *, check: Check = Check.GENERATE, mode: EngineMode = EngineMode.REAL
) -> dict[str, Any]:
    """The report that a probe leaves, as it is on disk."""
    request = ProbeRequest(
        cell_id="a/b/c/d",
        attempt=1,
        check=check,
        engine_mode=mode,
        engine_args={"model": "shipped:llama", "hf_token": TOKEN},
        sources=("vllm/platforms.py", "vllm/absent.py"),
    )
    (folder / "request.json").write_text(terms.to_json(request))
    report = folder / "report.json"
    subprocess.run(
        [sys.executable, "-m", "jobs.probe", folder / "request.json", report],
        cwd=environment.ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=True,
        timeout=30,
    )
    answer: dict[str, Any] = json.loads(report.read_text())
    return answer


def test_what_was_seen_before_the_first_step_failed_is_in_the_report(tmp_path: Path) -> None:
    report = probe(play(tmp_path, generate="raise RuntimeError('the first step')"))

    assert report["ready"]
    assert report["target"][0]["backend"] == "FLASH_ATTN"
    assert report["failure"]["phase"] == "generate"
    assert report["failure"]["chain"][-1]["message"] == "the first step"


@pytest.mark.parametrize("error", ["SystemExit(1)", "KeyboardInterrupt()", "ValueError('no')"])
def test_an_engine_may_refuse_to_start_in_any_way(tmp_path: Path, error: str) -> None:
    report = probe(play(tmp_path, start=f"raise {error}"))

    assert not report["ready"]
    assert report["failure"]["phase"] == "config"
    assert error.startswith(report["failure"]["chain"][-1]["type"].removeprefix("builtins."))


def test_a_vllm_that_cannot_be_imported_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "vllm.py").write_text("raise ImportError('libcuda.so.1')")

    report = probe(tmp_path)

    assert report["failure"]["phase"] == "import"
    assert report["failure"]["chain"][-1]["message"] == "libcuda.so.1"


def test_an_engine_that_need_not_generate_is_shut_down_when_it_is_ready(tmp_path: Path) -> None:
    report = probe(play(tmp_path), check=Check.INIT)

    assert report["failure"] is None
    assert report["ready"]
    assert report["phase"] == "teardown"
    assert [timed["phase"] for timed in report["phases"]] == [
        "prepare",
        "import",
        "config",
        "ready",
        "teardown",
    ]


def test_a_check_of_the_import_starts_no_engine(tmp_path: Path) -> None:
    report = probe(play(tmp_path, start="raise RuntimeError"), check=Check.IMPORT)

    assert report["failure"] is None
    assert not report["ready"]
    assert report["versions"]["vllm"] == "1.2.3"
    assert [timed["phase"] for timed in report["phases"]] == ["prepare", "import", "teardown"]


def test_the_code_that_ran_is_known_by_its_hash(tmp_path: Path) -> None:
    report = probe(play(tmp_path), check=Check.INIT)

    assert report["vllm_path"] == str(tmp_path / "vllm")
    assert report["versions"]["vllm"] == "1.2.3"
    assert len(report["sources"]["vllm/platforms.py"]) == 64
    assert report["sources"]["vllm/absent.py"] == "missing"


def test_an_emulated_engine_is_never_started_in_a_process_without_emulation(tmp_path: Path) -> None:
    report = probe(play(tmp_path), mode=EngineMode.EMULATED)

    assert not report["ready"]
    assert report["emulated"] is None
    assert report["failure"]["chain"][-1]["message"] == (
        "engine_mode=emulated, but emulated=False in this process"
    )


def test_a_secret_among_the_arguments_is_masked_before_anybody_can_read_it(tmp_path: Path) -> None:
    play(tmp_path, start="raise ValueError('no ' + arguments['hf_token'])")

    assert probe(tmp_path)["failure"]["chain"][-1]["message"] == "no ***"


def test_a_report_has_no_half_of_a_character(tmp_path: Path) -> None:
    play(tmp_path, reading=READING.replace("a card", "a \\udcff card"))

    assert probe(tmp_path, check=Check.INIT)["device"]["name"] == "a ? card"


def test_a_note_is_short_and_can_be_written_whatever_it_is_about() -> None:
    notes = Notes()

    assert notes.attempt("x", lambda: getattr("", "\udcff" * 10**6), ()) == ()
    assert "\\udcff" in notes.lines[0]
    assert len(notes.lines[0].encode()) < 10 * wording.LONGEST
