"""What lies over a base: which files Python takes, and when an overlay is made again."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jobs.contract.builds import ProvisionedBuild
from jobs.node.builds import store
from jobs.node.builds.errors import BuildNodeError, BuildSpecError
from jobs.node.builds.provision import digest_of, provision
from tests.unit import fake_vllm
from tests.unit.fake_vllm import FILES, STRICT, a_spec
from tests.unit.test_patches import CREATES, DELETES, RUNNER, TESTS

OTHER_RUNNER = RUNNER.replace("v2", "v3")

READ_ONLY = (
    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
)
"""Before a folder, and a command that can't write there."""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return fake_vllm.environment(tmp_path / "base")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def quiet(_: str) -> None:
    """Nobody listens."""


def answer(build: ProvisionedBuild, program: str) -> str:
    """Bytecode is written, as it is by default."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPATH"] = os.pathsep.join(build.path_entries)
    return subprocess.check_output([build.python, "-c", program], text=True, env=env).strip()


def runner(build: ProvisionedBuild) -> str:
    return answer(build, "import vllm.envs; print(vllm.envs.RUNNER)")


def test_python_takes_the_patched_file_and_the_base_s_others(python: Path, cache: Path) -> None:
    build = provision(a_spec(STRICT, interpreter=python), cache, quiet)

    program = "import vllm.platforms.cpu as cpu; print(cpu.name()); cpu.choose('FLASH')"
    with pytest.raises(subprocess.CalledProcessError):
        answer(build, program)
    assert answer(build, "import vllm; print(vllm.__file__)").startswith(build.path_entries[0])
    library = Path(build.path_entries[0], "vllm", "_C.abi3.so")
    assert library.resolve() == fake_vllm.site_packages(python) / "vllm" / "_C.abi3.so"


def test_a_base_that_can_only_be_read_gets_an_overlay_all_the_same(
    python: Path, cache: Path
) -> None:
    """As in an image. Root can write wherever the file system can."""
    program = """
    import sys
    from pathlib import Path
    from tests.unit.test_builds_overlays import RUNNER, a_spec, provision, quiet, runner
    python, cache = map(Path, sys.argv[1:])
    try:
        (python.parent / "file").touch()
    except OSError:
        print(runner(provision(a_spec(RUNNER, interpreter=python), cache, quiet)))
    """
    words = [sys.executable, "-c", textwrap.dedent(program), str(python), str(cache)]
    command = [*READ_ONLY, str(python.parents[1]), *words]

    assert subprocess.check_output(command, text=True) == "v2\n"


def test_a_build_names_what_was_changed_and_what_was_skipped(python: Path, cache: Path) -> None:
    spec = a_spec(STRICT + TESTS, CREATES, DELETES, interpreter=python)

    build = provision(spec, cache, quiet)

    assert list(build.patches) == ["1.diff", "2.diff", "3.diff"]
    assert build.patches["1.diff"] == spec.patches[0].sha256
    assert build.sources["vllm/envs.py"] == "deleted"
    assert set(build.sources) == {"vllm/envs.py", "vllm/new/thing.py", "vllm/platforms/cpu.py"}
    assert build.skipped == ("tests/test_cpu.py",)


def test_overlays_of_one_base_and_the_base_keep_their_bytecode_apart(
    python: Path, cache: Path
) -> None:
    builds = [
        provision(a_spec(*patches, interpreter=python), cache, quiet)
        for patches in ((), (RUNNER,), (OTHER_RUNNER,))
    ]

    # Twice, so that the second time it is the bytecode that is read.
    assert [runner(build) for build in builds * 2] == ["v1", "v2", "v3"] * 2
    assert len({build.digest for build in builds}) == 3


def test_an_overlay_is_reused(python: Path, cache: Path) -> None:
    first = provision(a_spec(RUNNER, interpreter=python), cache, quiet)
    runner(first)
    lines: list[str] = []

    second = provision(a_spec(RUNNER, interpreter=python), cache, lines.append)

    assert lines == ["b: reused"]
    assert (second.sources, second.digest) == (first.sources, first.digest)


def test_the_digest_follows_the_patches_and_their_order(python: Path) -> None:
    def digest(*patches: str) -> str:
        return digest_of(a_spec(*patches, interpreter=python))

    assert len({digest(), digest(RUNNER, CREATES), digest(CREATES, RUNNER), digest(RUNNER)}) == 4


def test_the_digest_is_known_before_anything_is_made(python: Path, cache: Path) -> None:
    spec = a_spec(RUNNER, interpreter=python)

    assert digest_of(spec) == provision(spec, cache, quiet).digest


@pytest.mark.parametrize("harm", ["edit", "lose a link", "lose the manifest", "add a module"])
def test_an_overlay_that_is_not_what_was_made_is_made_again(
    python: Path, cache: Path, harm: str
) -> None:
    build = provision(a_spec(RUNNER, interpreter=python), cache, quiet)
    site = Path(build.path_entries[0])
    match harm:
        case "edit":
            (site / "vllm" / "envs.py").write_text("RUNNER = 'v9'\n")
        case "lose a link":
            (site / "vllm" / "platforms").unlink()
        case "add a module":
            (site / "vllm" / "more.py").touch()
        case _:
            (site.parent / store.MANIFEST).unlink()

    again = provision(a_spec(RUNNER, interpreter=python), cache, quiet)

    assert (again.reused, again.sources) == (False, build.sources)
    assert runner(again) == "v2"


def test_an_overlay_does_not_outlive_its_base(python: Path, cache: Path) -> None:
    build = provision(a_spec(RUNNER, interpreter=python), cache, quiet)
    manifest = Path(build.path_entries[0]).parent / store.MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"package": "another"}))
    lines: list[str] = []

    again = provision(a_spec(RUNNER, interpreter=python), cache, lines.append)

    assert lines[0] == "b: the cached one lies over another base; making it again"
    assert not again.reused


def test_a_base_that_changed_under_an_overlay_gets_another(python: Path, cache: Path) -> None:
    before = provision(a_spec(RUNNER, interpreter=python), cache, quiet)
    (fake_vllm.site_packages(python) / "vllm" / "new.py").write_text("")

    after = provision(a_spec(RUNNER, interpreter=python), cache, quiet)

    assert after.digest != before.digest
    assert (Path(after.path_entries[0]) / "vllm" / "new.py").exists()


def test_a_patch_that_does_not_apply_leaves_no_overlay(python: Path, cache: Path) -> None:
    with pytest.raises(BuildSpecError, match=r"^build b: the patches .* can't be applied"):
        provision(a_spec(RUNNER.replace("v1", "v0"), interpreter=python), cache, quiet)

    assert [path.suffix for path in (cache / "overlays").iterdir()] == [".lock"]


def test_a_file_system_without_links_is_named(
    python: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(link: Path, _: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(link))

    monkeypatch.setattr(Path, "symlink_to", no_links)

    with pytest.raises(BuildNodeError, match="without symbolic links"):
        provision(a_spec(RUNNER, interpreter=python), cache, quiet)


def a_checkout(folder: Path, changes: dict[str, str]) -> Path:
    return fake_vllm.write(folder, FILES | {"setup.py": ""} | changes)


def test_a_checkout_lays_its_files_over_and_leaves_what_a_build_generates(
    python: Path, cache: Path, tmp_path: Path
) -> None:
    changes = {
        "vllm/envs.py": "RUNNER = 'v2'\n",
        "vllm/new/__init__.py": "",
        "vllm/configs/moe.json": '{"M": 1}\n',
        "vllm/_version.py": "__version__ = 'dev'\n",
        "vllm/_C.abi3.so": "built elsewhere",
    }
    checkout = a_checkout(tmp_path / "checkout", changes)
    (checkout / "vllm" / "entrypoints" / "llm.py").unlink()

    build = provision(a_spec(interpreter=python, checkout=str(checkout)), cache, quiet)

    assert runner(build) == "v2"
    assert set(build.sources) == {"vllm/envs.py", "vllm/new/__init__.py", "vllm/configs/moe.json"}
    assert answer(build, "import vllm._version as v; print(v.__version__)") == "0.32.0"
    assert Path(build.path_entries[0], "vllm", "entrypoints").is_symlink()


def test_patches_go_on_top_of_a_checkout(python: Path, cache: Path, tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path / "checkout", {"vllm/envs.py": "RUNNER = 'v2'\n"})
    patch = RUNNER.replace("v2", "v3").replace("v1", "v2")

    build = provision(a_spec(patch, interpreter=python, checkout=str(checkout)), cache, quiet)

    assert runner(build) == "v3"
    assert (checkout / "vllm" / "envs.py").read_text() == "RUNNER = 'v2'\n"


def test_a_checkout_of_git_brings_what_is_tracked_or_new_and_not_what_is_ignored(
    python: Path, cache: Path, tmp_path: Path
) -> None:
    changes = {".gitignore": "vllm/generated.py\n", "vllm/generated.py": "", "vllm/fresh.py": ""}
    checkout = a_checkout(tmp_path / "checkout", changes)
    subprocess.run(["git", "init", "-q", checkout], check=True)
    subprocess.run(["git", "-C", checkout, "add", "vllm/envs.py"], check=True)

    build = provision(a_spec(interpreter=python, checkout=str(checkout)), cache, quiet)

    assert set(build.sources) == {"vllm/fresh.py"}


def test_a_checkout_s_digest_is_that_of_its_content(python: Path, tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path / "one", {})
    shutil.copytree(checkout, tmp_path / "two")
    other = a_checkout(tmp_path / "three", {"vllm/envs.py": ""})

    first, second, third = (
        digest_of(a_spec(interpreter=python, checkout=str(root)))
        for root in (checkout, tmp_path / "two", other)
    )

    assert first == second != third


def test_a_git_checkout_that_git_can_t_read_is_the_user_s_mistake(
    python: Path, cache: Path, tmp_path: Path
) -> None:
    checkout = a_checkout(tmp_path / "checkout", {".git": "gitdir: /no/such/place\n"})

    with pytest.raises(BuildSpecError, match="git can't list the files"):
        provision(a_spec(interpreter=python, checkout=str(checkout)), cache, quiet)
