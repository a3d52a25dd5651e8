"""Provoke the failures by the way that every cell takes, and hear what they are called."""

import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

from jobs.contract.attempts import Attempt, Placement
from jobs.contract.builds import BuildSpec, Patch, ProvisionedBuild
from jobs.contract.terms import EngineMode
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import Cell
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from orchestrator.asked.config import Backend, Expectation, Hardware, Model
from orchestrator.asked.deadlines import of_attempt
from orchestrator.concluded import causes
from orchestrator.concluded.judge import Judgement, judge
from orchestrator.running.cluster import read_attempt
from orchestrator.taxonomy import taxonomy
from tests.builders import H100
from tests.provoking import hub, models
from tests.provoking.scenarios import SMALL, Build, Scenario

HERE = Path(__file__).parent
AT_ONCE = 2
MADE = "made:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    scenario: Scenario
    attempt: Attempt
    got: str | None
    cause: str

    @property
    def is_right(self) -> bool:
        return self.got == self.scenario.expected

    @property
    def misleads(self) -> bool:
        """Wrong, and the wrong one would act on it."""
        return _owner(self.got) not in {_owner(self.scenario.expected), "unknown"}


def _owner(category: str | None) -> str:
    return "nobody" if category is None else taxonomy().categories[category].owner


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """Where the scenarios are played."""

    folder: Path
    cache: Path
    hub: str
    builds: dict[Build, tuple[BuildSpec, ProvisionedBuild]]


def answers(scenarios: Iterable[Scenario]) -> Iterator[Answer]:
    """In the order in which they are there."""
    ordered = sorted(scenarios, key=lambda each: each.alone)
    crowd = [scenario for scenario in ordered if not scenario.alone]
    with _stage({scenario.build for scenario in ordered}) as stage:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(_answer, crowd, repeat(stage))
        yield from map(_answer, ordered[len(crowd) :], repeat(stage))


@contextmanager
def _stage(builds: Iterable[Build]) -> Iterator[Stage]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="provoking-")))
        models.make(folder / "models")
        stack.callback(_remove_cgroups)
        [config] = compose(["build=[v0_32]"])
        cache = Path(config.cache)
        specs = {build: _spec(build) for build in builds}
        yield Stage(
            folder=folder,
            cache=cache,
            hub=stack.enter_context(hub.served()),
            builds={build: (spec, provision(spec, cache, print)) for build, spec in specs.items()},
        )


def _spec(build: Build) -> BuildSpec:
    if build is Build.EMULATED:
        [config] = compose(["build=[v0_32_gpu]", "engine_mode=emulated", "suite.check=init"])
        return build_specs(config)["v0_32_gpu"]
    [config] = compose(["build=[v0_32]"])
    return replace(build_specs(config)["v0_32"], name=build.value, patches=(PATCHES[build],))


def _new_file(path: str, text: str) -> str:
    lines = text.splitlines()
    added = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{added}"


def _first_line(path: str, line: str) -> str:
    """Put before the line that every file of vLLM begins with."""
    licence = "# SPDX-License-Identifier: Apache-2.0"
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1,2 @@\n+{line}\n {licence}\n"


PATCHES = {
    Build.EVIL: Patch(
        name="evil.diff",
        text=(HERE / "hooks.diff").read_text()
        + _new_file("vllm/evil.py", (HERE / "evil.py").read_text())
        + _new_file("vllm/misleading.py", (HERE / "misleading.py").read_text()),
    ),
    Build.ENDS_ITS_INTERPRETER: Patch(
        name="exit.diff", text=_first_line("vllm/config/__init__.py", "import os; os._exit(3)")
    ),
    Build.WRONG_SYNTAX: Patch(
        name="syntax.diff", text=_first_line("vllm/v1/sample/sampler.py", "def broken(:")
    ),
    Build.WRONG_IMPORT: Patch(
        name="import.diff",
        text=_first_line("vllm/config/model.py", "from vllm.utils import nothing_of_that_name"),
    ),
    Build.WRONG_NAME: Patch(
        name="name.diff", text=_first_line("vllm/v1/sample/sampler.py", "nothing_of_that_name")
    ),
}


def _answer(scenario: Scenario, stage: Stage) -> Answer:
    cell = _cell(scenario, stage)
    _, build = stage.builds[scenario.build]
    request = cell_request(
        cell,
        build,
        attempt=1,
        workdir=str(stage.folder / "cells" / cell.id),
        cache=str(stage.cache),
    )
    attempt = read_attempt(run_cell(request, Placement(node="here")))
    judgement = judge(cell, build, attempt)
    return Answer(
        scenario=scenario,
        attempt=attempt,
        got=judgement.category,
        cause=_cause(cell, attempt, judgement),
    )


def _cause(cell: Cell, attempt: Attempt, judgement: Judgement) -> str:
    if judgement.outcome == "runs" or judgement.category is None:
        return "; ".join(judgement.reasons)
    return causes.one_line(cell, attempt, judgement.category)


def _cell(scenario: Scenario, stage: Stage) -> Cell:
    spec, _ = stage.builds[scenario.build]
    emulated = scenario.build is Build.EMULATED
    mode = EngineMode.EMULATED if emulated else EngineMode.REAL
    name = "-".join(scenario.name.split())
    return Cell(
        id=f"{'h100-emulated' if emulated else 'cpu'}/{name}/auto/{scenario.build}",
        hardware=H100 if emulated else Hardware(vendor="cpu"),
        model=_model(scenario, stage),
        backend=Backend(target=scenario.asked, runner=scenario.runner),
        build=spec,
        check=scenario.check,
        engine_mode=mode,
        isolation=scenario.isolation,
        deadlines=of_attempt(mode, 1.0, quiet_s=scenario.quiet_s, phases_s=scenario.deadlines_s),
        attempts=1,
        expectation=Expectation(),
    )


def _model(scenario: Scenario, stage: Stage) -> Model:
    speculative = scenario.speculative and {
        key: _path(value, stage) for key, value in scenario.speculative.items()
    }
    args = {key: value for key, value in (SMALL | scenario.args).items() if value is not None}
    home = str(stage.folder / "hub")
    hub = {"HF_ENDPOINT": stage.hub, "HF_HOME": home, "HF_HUB_DISABLE_XET": "1"}
    return Model(
        path=_path(scenario.model, stage),
        speculative=speculative,
        moe=scenario.moe,
        engine_args=args,
        env={**hub, **scenario.env},
    )


def _path(value: Any, stage: Stage) -> Any:
    if isinstance(value, str) and value.startswith(MADE):
        return str(stage.folder / "models" / value.removeprefix(MADE))
    return value


def _remove_cgroups() -> None:
    for group in Path("/sys/fs/cgroup").glob("*/matrix-evil-*"):
        group.rmdir()
