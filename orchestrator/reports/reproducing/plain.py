"""Of a real engine: an environment of its own, patches over it, and plain vLLM."""

from collections.abc import Iterator

from jobs.contract.builds import BuildSpec
from jobs.node.builds import diffs, requirements
from jobs.quiet import NO_USAGE_REPORTS
from jobs.secrets import MASK
from orchestrator.asked.cell_requests import environment
from orchestrator.asked.cells import Cell
from orchestrator.concluded.record import Record
from orchestrator.kept.ingredients import Ingredients, archive, our_code
from orchestrator.reports.reproducing import shell, snippet

ON_CPU = {
    # GiB. Otherwise the engine takes a share of the machine.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
IN_ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
SITE = "jobs/probe/site/"
WITH_SEVERAL = {"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"}
"""To ask a function of the engine's processes; it is our own."""


def about(cell: Cell) -> Iterator[str]:
    yield from shell.comment(
        "usage: sh SCRIPT [FOLDER]. All that it makes lies in the folder: an environment with "
        "vLLM, which takes GiB and minutes, and the program that asks it. Exits with 0 if vLLM "
        "does again what vllm-matrix saw, and with 1 if not."
    )
    yield from shell.comment("PYTHON=/path/to/python takes a vLLM that is there already.")
    yield from shell.comment("TORCH_BACKEND= takes torch from the index that uv uses anyway.")
    if cell.hardware.vendor != "cpu":
        devices = cell.model.devices
        yield from shell.comment(
            f"It needs {devices} x {cell.hardware.product or cell.axis('hardware')}."
        )


def steps(cell: Cell, record: Record, ingredients: Ingredients) -> Iterator[str]:
    yield from shell.steps(
        _models(ingredients),
        _environment(cell.build, _python(record)),
        ["unset PYTHONPATH"],
        _interpreter(cell),
        _overlay(cell.build, ingredients),
        _variables(cell),
        _program(cell, record),
    )


def variables(cell: Cell) -> dict[str, str]:
    several = cell.model.devices > 1
    ours = {**(WITH_SEVERAL if several else IN_ONE_PROCESS), **NO_USAGE_REPORTS}
    on_cpu = ON_CPU if cell.hardware.vendor == "cpu" else {}
    return {**ours, **on_cpu, **environment(cell)}


def installs(build: BuildSpec) -> list[str]:
    """Words for uv, for people."""
    vllm = f"{build.distribution}=={build.release}" if build.release else str(build.wheel)
    backend = requirements.torch_backend(build)
    return ["--torch-backend", backend, vllm, *build.extra_requirements]


def _models(ingredients: Ingredients) -> Iterator[str]:
    files = ingredients.models
    folders = dict.fromkeys(path.rsplit("/", 1)[0] for path in files)
    if folders:
        yield from shell.comment(
            "Configurations of models without weights, as vllm-matrix ships them."
        )
        yield f"mkdir -p {' '.join(map(shell.quoted, folders))}"
    for path, text in files.items():
        yield from shell.here(f"cat >{shell.quoted(path)}", text)


def _environment(build: BuildSpec, version: str) -> Iterator[str]:
    if build.interpreter is not None:
        yield f"python=${{PYTHON:-{build.interpreter}}}"
        return
    if build.wheel is not None:
        yield f"wheel=${{WHEEL:-{build.wheel}}}"
    yield "python=${PYTHON:-$folder/env/bin/python}"
    yield 'if [ -z "${PYTHON:-}" ] && [ ! -e env/ready ]; then'
    yield "  uv=$(command -v uv) || {"
    yield "    python3 -m venv tools"
    yield "    tools/bin/python -m pip install --quiet uv"
    yield "    uv=$folder/tools/bin/uv"
    yield "  }"
    yield f'  "$uv" venv --quiet --clear --python {version} env'
    overrides = requirements.overrides(build)
    yield from shell.here("  cat >overrides.txt", "\n".join(overrides))
    backend = requirements.torch_backend(build)
    yield f"  backend=${{TORCH_BACKEND-{backend}}}"
    what = ['"$wheel"'] if build.wheel else [shell.quoted(f"{build.distribution}=={build.release}")]
    what += map(shell.quoted, build.extra_requirements)
    yield '  "$uv" pip install --python env/bin/python --override overrides.txt \\'
    yield f'    ${{backend:+--torch-backend "$backend"}} {" ".join(what)}'
    yield "  touch env/ready"
    yield "fi"


def _interpreter(cell: Cell) -> Iterator[str]:
    """On a CPU Triton has no driver of its own, and says so before it interprets anything."""
    if environment(cell).get("TRITON_INTERPRET") == "1":
        files = {path.removeprefix(SITE): text for path, text in our_code().items() if SITE in path}
        yield from shell.comment("A driver for Triton's interpreter, as vllm-matrix ships it.")
        yield "mkdir -p interpreter"
        yield from shell.unpacked("interpreter", archive(files))
        yield "PYTHONPATH=$folder/interpreter"


def _overlay(build: BuildSpec, ingredients: Ingredients) -> Iterator[str]:
    """Links to all that stays as it is, so that no vLLM of anybody's is changed."""
    if not build.patches and not ingredients.changed:
        return
    paths = sorted(ingredients.changed or _patched(build))
    yield from shell.comment("vLLM as it is, but for the files that differ.")
    yield 'site=$("$python" -c \'import importlib.util as u; print(u.find_spec("vllm").origin)\')'
    yield "site=${site%/vllm/__init__.py}"
    yield "rm -rf overlay"
    yield "mkdir overlay"
    yield 'cp -rs "$site/vllm" overlay/vllm'
    yield "find overlay -name __pycache__ -prune -exec rm -rf {} +"
    yield f"for file in {' '.join(map(shell.quoted, ['vllm/__init__.py', *paths]))}; do"
    yield '  rm -f "overlay/$file"'
    yield '  if [ -e "$site/$file" ]; then cp "$site/$file" "overlay/$file"; fi'
    yield "done"
    if ingredients.changed:
        yield from shell.unpacked("overlay", archive(ingredients.changed))
    else:
        for number, patch in enumerate(build.patches, 1):
            yield from shell.here(f"cat >{number}.diff", patch.text)
            strip = f"-p{diffs.parse(patch.text).strip}"
            apply = f"git apply {strip} --include='vllm/*' --whitespace=nowarn"
            yield f"(cd overlay && GIT_DIR=/dev/null {apply} ../{number}.diff)"
            # It can end well and have changed nothing.
            yield f"(cd overlay && GIT_DIR=/dev/null {apply} --reverse --check ../{number}.diff)"
    yield "PYTHONPATH=$folder/overlay${PYTHONPATH:+:$PYTHONPATH}"


def _patched(build: BuildSpec) -> set[str]:
    files = (file for patch in build.patches for file in diffs.parse(patch.text).files)
    return {path for file in files if file.inside for path in file.paths}


def _variables(cell: Cell) -> Iterator[str]:
    return (shell.exported(*each) for each in variables(cell).items() if MASK not in each[1])


def _program(cell: Cell, record: Record) -> Iterator[str]:
    yield from shell.here("cat >program.py", snippet.program(cell, record.attempt))
    yield "export PYTHONPATH"
    yield 'exec "$python" program.py'


def _python(record: Record) -> str:
    """The version of the interpreter, without its last part."""
    report = record.attempt.report if record.attempt else None
    version = (report.versions if report else {}).get("python", "3.12")
    return ".".join(version.split(".")[:2])
