"""A process that has vLLM imported, and forks one probe after the other."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.contract import terms
from jobs.contract.asked import ProbeRequest, Workload
from jobs.contract.terms import Check, EngineMode
from jobs.probe import environment

SITE = environment.ROOT / "jobs" / "probe" / "site"

SMALL: dict[str, Any] = {
    "dtype": "float32",
    "load_format": "dummy",
    "skip_tokenizer_init": True,
    "enforce_eager": True,
    "max_model_len": 128,
    "max_num_seqs": 4,
    "max_num_batched_tokens": 256,
    "disable_log_stats": True,
    "num_gpu_blocks_override": 64,
}

FORKING = """
import os, sys, pathlib
from jobs.probe import cell
cell.preload()
print("preloaded", flush=True)
for line in sys.stdin:
    folder = pathlib.Path(line.strip())
    child = os.fork()
    if child == 0:
        log = os.open(folder / "probe.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        cell.run(folder / "request.json", folder / "report.json")
        os._exit(0)
    os.waitpid(child, 0)
    print("done", flush=True)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmParent:
    process: subprocess.Popen[str]
    folder: Path

    @classmethod
    @contextlib.contextmanager
    def started(cls, python: Path, folder: Path, *, env: dict[str, str]) -> Iterator["WarmParent"]:
        with subprocess.Popen(
            [python, "-c", FORKING],
            cwd=environment.ROOT,
            env={**os.environ, "VLLM_CACHE_ROOT": str(folder / "cache"), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            parent = cls(process=process, folder=folder)
            parent.wait_for("preloaded")
            yield parent
            process.kill()

    def probe(self, *, workload: Workload | None = None, **engine_args: Any) -> dict[str, Any]:
        """The report of a cell; of its speed as well, with a *workload*."""
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        (folder / "request.json").write_text(terms.to_json(request(engine_args, workload)))
        assert self.process.stdin is not None
        print(folder, file=self.process.stdin, flush=True)
        self.wait_for("done")
        report: dict[str, Any] = json.loads((folder / "report.json").read_text())
        return report

    def wait_for(self, word: str) -> None:
        """vLLM may print lines of its own."""
        assert self.process.stdout is not None
        assert any(line.strip() == word for line in iter(self.process.stdout.readline, ""))


def request(engine_args: dict[str, Any], workload: Workload | None = None) -> ProbeRequest:
    return ProbeRequest(
        cell_id="cpu/model/backend/build",
        attempt=1,
        check=Check.SPEED if workload else Check.GENERATE,
        workload=workload,
        engine_mode=EngineMode.REAL,
        engine_args=SMALL | engine_args,
        sources=("vllm/config/speculative.py",),
    )
