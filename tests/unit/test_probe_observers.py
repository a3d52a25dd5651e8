"""The phases that a worker goes through, told by a worker that is played."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from jobs.contract.terms import Phase
from jobs.probe import environment, phases

WORKER = {
    "platforms.py": "current_platform = object()",
    "v1/attention/selector.py": "def _cached_get_attn_backend(*arguments): pass",
    "v1/worker/worker_base.py": """
        class WorkerWrapperBase:
            def __init__(self, worker): self.worker = worker
            def load_model(self): return self.worker.load_model()
    """,
}

START = """
    from jobs.probe import observers
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    class Runner:
        def capture_model(self, profile_only=False): return "captured"

    class Worker:
        model_runner = Runner()
        def load_model(self): return "loaded"
        def determine_available_memory(self): return self.model_runner.capture_model(True)
        def compile_or_warm_up_model(self): return self.model_runner.capture_model()

    class Eager:
        def compile_or_warm_up_model(self): return "warm"

    observers.install()
    observers.install()
    engine = WorkerWrapperBase(WORKER())
    print([getattr(engine, step)() for step in STEPS])
"""


def started(folder: Path, worker: str, *steps: str) -> tuple[str, list[Phase]]:
    """What the worker answered, and the phases that were entered."""
    for name, text in WORKER.items():
        path = folder / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    code = textwrap.dedent(START).replace("WORKER", worker).replace("STEPS", json.dumps(steps))
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=environment.ROOT,
        env={**os.environ, "PYTHONPATH": str(folder), environment.PROBE_FOLDER: str(folder)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return answer.stdout.strip(), [entry.phase for entry in phases.history(folder)]


def test_a_workers_methods_begin_phases_and_answer_as_they_do(tmp_path: Path) -> None:
    assert started(tmp_path, "Worker", "load_model") == ("['loaded']", [Phase.LOAD])


def test_graphs_are_captured_in_a_phase_of_their_own_but_not_while_profiling(
    tmp_path: Path,
) -> None:
    answers, entered = started(
        tmp_path, "Worker", "determine_available_memory", "compile_or_warm_up_model"
    )

    assert answers == "['captured', 'captured']"
    assert entered == [
        Phase.PROFILE,
        Phase.KV_CACHE,
        Phase.COMPILE,
        Phase.CAPTURE,
        Phase.COMPILE,
    ]


def test_a_worker_without_graphs_only_warms_up(tmp_path: Path) -> None:
    assert started(tmp_path, "Eager", "compile_or_warm_up_model") == ("['warm']", [Phase.COMPILE])
