"""Files that a build names, on their way to a node that lacks them."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.contract.builds import BuildSpec
from jobs.node import shipped_files
from jobs.node.builds import store
from jobs.node.builds.digests import digest_of
from jobs.node.builds.errors import BuildNodeError, BuildSpecError
from jobs.node.shipped_files import Original, chunks, found, kept, originals
from tests.unit import fake_vllm
from tests.unit.fake_vllm import FILES, a_spec


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return fake_vllm.wheel(tmp_path / "dist" / "vllm-1-py3-none-any.whl", FILES)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    more = {"setup.py": "", "vllm/_C.abi3.so": "compiled", "vllm/new/ünïcode.py": "A = 'é'\n"}
    return fake_vllm.write(tmp_path / "checkout", FILES | more)


def of_wheel(wheel: Path) -> BuildSpec:
    return BuildSpec(name="b", wheel=str(wheel), torch_backend="cpu")


def the_only(spec: BuildSpec) -> Original:
    [original] = originals(spec)
    return original


def quiet(_: str) -> None:
    """Nobody listens."""


def sent(original: Original, cache: Path) -> Path:
    return kept(original, chunks(original), cache, quiet)


def elsewhere(original: Original) -> Original:
    """As a node sees it that has no such path."""
    return replace(original, path=f"/no/such/folder/{Path(original.path).name}")


def test_a_wheel_keeps_its_name_and_its_content(
    wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_files, "CHUNK", 100)

    copy = sent(the_only(of_wheel(wheel)), cache)

    assert copy.name == wheel.name
    assert copy.read_bytes() == wheel.read_bytes()
    assert digest_of(of_wheel(copy)) == digest_of(of_wheel(wheel))


def test_of_a_checkout_goes_what_lies_over_a_build(checkout: Path, cache: Path) -> None:
    spec = a_spec(checkout=str(checkout))

    copy = sent(the_only(spec), cache)

    assert (copy / "vllm" / "new" / "ünïcode.py").read_text() == "A = 'é'\n"
    assert not (copy / "vllm" / "_C.abi3.so").exists()
    assert not (copy / "setup.py").exists()
    assert digest_of(replace(spec, checkout=str(copy))) == digest_of(spec)


def test_of_a_git_checkout_goes_nothing_that_git_ignores(checkout: Path, cache: Path) -> None:
    fake_vllm.write(checkout, {".gitignore": "secret.py\n", "vllm/secret.py": ""})
    subprocess.run(["git", "init", "-q", checkout], check=True)

    copy = sent(the_only(a_spec(checkout=str(checkout))), cache)

    assert (copy / "vllm" / "envs.py").exists()
    assert not (copy / "vllm" / "secret.py").exists()


def test_a_node_that_sees_the_same_content_needs_nothing(
    wheel: Path, checkout: Path, cache: Path
) -> None:
    spec = replace(of_wheel(wheel), checkout=str(checkout))

    assert [found(each, cache, quiet) for each in originals(spec)] == [wheel, checkout]
    assert not cache.exists()


def test_a_node_that_has_another_file_under_that_name_lacks_it(wheel: Path, cache: Path) -> None:
    original = the_only(of_wheel(wheel))
    fake_vllm.wheel(wheel, {"vllm/other.py": ""})

    assert found(original, cache, quiet) is None


def test_what_was_sent_is_found_whatever_it_was_called(
    wheel: Path, checkout: Path, cache: Path
) -> None:
    for original in originals(replace(of_wheel(wheel), checkout=str(checkout))):
        copy = sent(original, cache)

        assert found(elsewhere(original), cache, quiet) == copy


def test_the_same_content_is_received_once(wheel: Path, cache: Path) -> None:
    original = the_only(of_wheel(wheel))
    first = sent(original, cache)

    def never() -> bytes:
        raise AssertionError("it was asked for again")

    assert kept(original, iter(never, b""), cache, quiet) == first


def test_a_copy_that_was_edited_is_sent_again(checkout: Path, cache: Path) -> None:
    original = the_only(a_spec(checkout=str(checkout)))
    copy = sent(original, cache)
    (copy / "vllm" / "envs.py").write_text("RUNNER = 'v9'\n")
    lines: list[str] = []

    assert found(elsewhere(original), cache, lines.append) is None
    assert lines == ["the cached one was edited in place; making it again"]
    assert (sent(original, cache) / "vllm" / "envs.py").read_text() == FILES["vllm/envs.py"]


def test_what_changed_on_its_way_is_not_kept(checkout: Path, cache: Path) -> None:
    original = the_only(a_spec(checkout=str(checkout)))
    (checkout / "vllm" / "envs.py").write_text("RUNNER = 'v9'\n")

    with pytest.raises(BuildNodeError, match="did not arrive as it was when the run began"):
        sent(original, cache)

    assert [path.suffix for path in (cache / "shipped").iterdir()] == [".lock"]


def test_what_has_no_room_is_refused_before_it_comes(wheel: Path, cache: Path) -> None:
    original = replace(the_only(of_wheel(wheel)), mib=2.0**40)

    with pytest.raises(BuildNodeError, match=r"needs about .* GiB, and .* GiB free"):
        sent(original, cache)

    assert [path.suffix for path in (cache / "shipped").iterdir()] == [".lock"]


def test_what_this_machine_lacks_is_left_to_the_nodes() -> None:
    spec = BuildSpec(name="b", wheel="/no/such.whl", checkout="/no/such/checkout")

    assert originals(spec) == ()


def test_a_relative_path_is_this_machine_s(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(wheel.parent)

    assert the_only(of_wheel(Path(wheel.name))).path == str(wheel)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (BuildSpec(name="b", wheel="/etc/passwd"), "is not a .whl file"),
        (BuildSpec(name="b", release="1", checkout="/etc"), "has no vllm/__init__.py"),
    ],
)
def test_what_is_here_and_no_such_thing_is_the_user_s_mistake(spec: BuildSpec, said: str) -> None:
    with pytest.raises(BuildSpecError, match=said):
        originals(spec)


def test_a_wheel_is_known_by_its_bytes_alone(wheel: Path, tmp_path: Path) -> None:
    same = tmp_path / "other-1-py3-none-any.whl"
    same.write_bytes(wheel.read_bytes())
    os.utime(same, (1, 1))

    assert the_only(of_wheel(same)).sha256 == the_only(of_wheel(wheel)).sha256


def test_copies_lie_by_their_content(wheel: Path, cache: Path) -> None:
    original = the_only(of_wheel(wheel))

    copy = sent(original, cache)

    assert copy.parent == cache / "shipped" / original.sha256
    assert (copy.parent / store.MANIFEST).exists()
