"""
`python -m benchmarks.cells [ROUNDS]`: what a cell costs, warm and cold.

The same cells by the way that a node takes, `run_cell`, in turn, in one run: a small engine
on a CPU that generates (`check=generate`), and an emulated one (`check=init`). Each counts
from the request to the attempt: the engine, its report, and the end of all its processes.

- `warm_s` is of a fork of a host that is there. Not in it is the start of the host, `host_s`,
  which all cells of a build and environment share; `pays_after` cells make up for it.
- `cold_s` is of a host of its own. Nothing else differs: neither caches nor environment.
- `alone_s` is of the same probe in an interpreter that imports only what this cell needs,
  which a host, made for many, does not know.
- `plain_s` is of a script with the same arguments and vLLM's own defaults, which are a
  process for the engine and another interpreter to look at the model. Only the memory for
  the KV cache is a probe's, since a share of the machine's may not be free.

Neither Ray nor making builds ready counts. Each is the median of ROUNDS, with files in the
page cache. The last line is one JSON object; `ratio` is `cold_s / warm_s`.
"""

import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.contract.asked import CellRequest
from jobs.contract.attempts import Placement
from jobs.contract.terms import Isolation, to_json
from jobs.node import environment, ports
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell
from jobs.probe import environment as probe_environment
from jobs.probe import shipped
from orchestrator.asked import cells
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose

ROUNDS = 5

REAL = (
    "hardware=[cpu]",
    "model=[llama]",
    "backend=[auto]",
    "build=[v0_32]",
    "suite.check=generate",
)
EMULATED = (
    "hardware=[mi300x]",
    "model=[llama31_8b]",
    "backend=[auto]",
    "build=[v0_32_gpu]",
    "engine_mode=emulated",
    "suite.check=init",
)

KV_SPACE = "VLLM_CPU_KVCACHE_SPACE"

PLAIN = """
import json, sys
from vllm import LLM, SamplingParams
llm = LLM(**json.loads(sys.argv[1]))
sampling = SamplingParams(max_tokens=8, temperature=0, ignore_eos=True, detokenize=False)
outputs = llm.generate([{"prompt_token_ids": [1, 5, 6, 7, 5, 6, 7]}], sampling, use_tqdm=False)
assert len(outputs[0].outputs[0].token_ids) == 8
"""

Way = Callable[[CellRequest], None]


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real = _request(REAL, Path(folder, "real"))
        seconds = _measure(
            real, {"warm": _warm, "cold": _cold, "alone": _alone, "plain": _plain}, rounds
        )
        emulated = _measure(
            _request(EMULATED, Path(folder, "emulated")), {"warm": _warm, "cold": _cold}, rounds
        )
    print(_table({"real": seconds, "emulated": emulated}))  # noqa: T201 - it is what this is for
    print(json.dumps(figures(seconds, emulated)))  # noqa: T201


def figures(real: dict[str, list[float]], emulated: dict[str, list[float]]) -> dict[str, float]:
    middle = {way: statistics.median(all_s) for way, all_s in real.items()}
    host_s = middle["host"] - middle["warm"]
    warm_s, cold_s = (statistics.median(emulated[way]) for way in ("warm", "cold"))
    return {
        **{f"{way}_s": round(middle[way], 3) for way in ("cold", "warm", "alone", "plain")},
        "ratio": round(middle["cold"] / middle["warm"], 1),
        "alone_ratio": round(middle["alone"] / middle["warm"], 1),
        "host_s": round(host_s, 1),
        "pays_after": math.ceil(host_s / (middle["alone"] - middle["warm"])),
        "emulated_cold_s": round(cold_s, 3),
        "emulated_warm_s": round(warm_s, 3),
        "emulated_ratio": round(cold_s / warm_s, 1),
    }


def _request(words: Sequence[str], folder: Path) -> CellRequest:
    [config] = compose(words)
    specs = build_specs(config)
    [cell] = cells.expand(config, specs)
    build = provision(specs[cell.axis("build")], Path(config.cache), _say)
    folder.mkdir()
    return cell_request(cell, build, attempt=1, workdir=str(folder), cache=config.cache)


def _measure(request: CellRequest, ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """Seconds of each way; `host` is of the cell that first had to start one."""
    seconds: dict[str, list[float]] = defaultdict(list)
    seconds["host"].append(_timed(_warm, request))
    for number in range(rounds):
        # The host may have gone while others took their time.
        _warm(request)
        for way, run in ways.items():
            seconds[way].append(_timed(run, request))
            _say(f"round {number + 1}, {way}: {seconds[way][-1]:.2f} s")
    return dict(seconds)


def _timed(run: Way, request: CellRequest) -> float:
    began = time.monotonic()
    run(request)
    return time.monotonic() - began


def _warm(request: CellRequest) -> None:
    _run(request, Isolation.WARM)


def _cold(request: CellRequest) -> None:
    _run(request, Isolation.COLD)


def _run(request: CellRequest, isolation: Isolation) -> None:
    asked = dataclasses.replace(request, isolation=isolation)
    _check(json.loads(run_cell(asked, Placement(node="here")))["report"])


def _alone(request: CellRequest) -> None:
    folder = Path(request.workdir)
    report = folder / "report.json"
    report.unlink()
    (folder / "request.json").write_text(to_json(request.probe))
    with tempfile.TemporaryDirectory() as temporary, ports.held() as port:
        cell = environment.of_cell(request, Path(temporary), port)
        env = environment.of_host(request) | {k: v for k, v in cell.items() if v is not None}
        command = [
            request.build.python,
            "-m",
            "jobs.probe",
            str(folder / "request.json"),
            str(report),
        ]
        _quietly(command, env)
    _check(json.loads(report.read_text()))


def _plain(request: CellRequest) -> None:
    arguments = json.dumps(shipped.resolve(request.probe.engine_args))
    env = {**os.environ, KV_SPACE: probe_environment.DEFAULTS[KV_SPACE]}
    _quietly([request.build.python, "-c", PLAIN, arguments], env)


def _quietly(command: Sequence[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, check=False, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{done.stderr}")


def _check(report: dict[str, object] | None) -> None:
    if report is None or report["failure"] is not None or not report["ready"]:
        sys.exit(f"the cell failed, so there is nothing to measure: {report}")


def _table(kinds: dict[str, dict[str, list[float]]]) -> str:
    lines = [
        f"{kind:10}{way:8}{statistics.median(all_s):8.2f} s  {min(all_s):.2f} to {max(all_s):.2f}"
        for kind, ways in kinds.items()
        for way, all_s in ways.items()
    ]
    return "\n".join(lines)


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - it takes minutes


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
