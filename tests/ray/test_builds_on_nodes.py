"""
Builds made ready on three raylets: all at once, of files that are sent where they are missing.
Cells run on one of them only, which has a CPU.

The vLLM is one of a few lines, in a real wheel that the real uv installs. What is the user's
lies in a folder that only the head sees; one node's cache is on a disk of 64 MiB.
"""

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from ray._private import ray_constants

from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.node import caches
from jobs.node.builds.provision import digest_of, provision
from jobs.node.builds.store import WAITING
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from orchestrator.asked.config import ClusterChoice
from orchestrator.errors import ConfigError
from orchestrator.running.cluster import BuildNews, BuildReady, BuildTrouble, Node
from orchestrator.running.on_ray.builds import Provisioning, first
from orchestrator.running.on_ray.cluster import RayCluster
from tests.ray.conftest import StartDriver
from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import NodeKind
from tests.ray.small_disk import SmallDisk, small_disk
from tests.unit import fake_vllm, small_wheels
from tests.unit.fake_vllm import FILES

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.timeout(300)]

LABELS = {"vm.cpu": "yes"}
SLOW = FILES | {"vllm/entrypoints/llm.py": "import time; time.sleep(600)\n"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A cluster, and folders: *mine* is seen by the head alone."""

    cluster: MixedCluster
    ray: RayCluster
    mine: Path
    small: SmallDisk
    folder: Path

    @property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.ray.nodes()}

    def cache(self, name: str) -> Path:
        return self.folder / f"cache-{name}"

    def wheel(self, files: dict[str, str], name: str) -> Path:
        content: dict[str, str | bytes] = {**files, "vllm/about.txt": name}
        return small_wheels.write(self.mine / name, "vllm", "0.32.0", content)

    def made(self, spec: BuildSpec, cache: str = caches.USUAL) -> list[BuildNews]:
        """All that is said until every node has the build, or can't."""
        work = self.begun(spec, cache)
        return until(work, lambda _: not work.pending())

    def begun(self, spec: BuildSpec, cache: str = caches.USUAL) -> Provisioning:
        work = Provisioning(cache)
        for node in self.nodes.values():
            work.begin(node, [spec], deadline_s=60)
        return work

    def build(self, news: list[BuildNews], name: str) -> ProvisionedBuild:
        [end] = [end for end in self._ends(news, name) if isinstance(end, BuildReady)]
        return end.build

    def trouble(self, news: list[BuildNews], name: str) -> str:
        [end] = [end for end in self._ends(news, name) if isinstance(end, BuildTrouble)]
        return end.message

    def _ends(self, news: list[BuildNews], name: str) -> list[BuildReady | BuildTrouble]:
        ends = [each for each in news if not isinstance(each, str)]
        return [end for end in ends if end.node_id == self.nodes[name].id]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("builds")
    usual = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(folder / "uv")}

    def kind(name: str, cache: Path, prefix: tuple[str, ...] = (), cpus: int = 0) -> NodeKind:
        here = {**usual, caches.VARIABLE: str(cache)}
        return NodeKind(name=name, labels=LABELS, environment=here, prefix=prefix, cpus=cpus)

    with (
        pytest.MonkeyPatch.context() as patch,
        small_disk(folder / "mine", "size=64k") as hidden,
        small_disk(folder / "small", "size=64m,mode=700") as small,
        MixedCluster(
            [
                kind("head", folder / "cache-head"),
                kind("far", folder / "cache-far", hidden.prefix, cpus=1),
                kind("full", small.folder, small.prefix),
            ]
        ) as cluster,
    ):
        patch.setenv("RAY_AUTH_MODE", "disabled")
        # As `ON_THE_LOOPBACK` says it to a driver that is a process of its own.
        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        ray = RayCluster(ClusterChoice(address=cluster.address), lambda _: None)
        try:
            yield Place(cluster=cluster, ray=ray, mine=folder / "mine", small=small, folder=folder)
        finally:
            ray.close()


def a_wheel(path: Path, checkout: Path | None = None) -> BuildSpec:
    laid = None if checkout is None else str(checkout)
    return BuildSpec(name="b", wheel=str(path), torch_backend="cpu", checkout=laid)


def test_what_lies_with_the_user_alone_is_sent_once_to_nodes_that_lack_it(place: Place) -> None:
    checkout = fake_vllm.write(place.mine / "checkout", FILES | {"vllm/envs.py": "RUNNER = 'v3'\n"})
    spec = a_wheel(place.wheel(FILES, "sent"), checkout)

    news = place.made(spec)

    far = place.build(news, "far")
    assert place.build(news, "head").digest == far.digest == digest_of(spec)
    assert [*far.sources] == ["vllm/envs.py"]
    assert Path(far.python).is_relative_to(place.cache("far"))
    sent = [line for line in lines(news) if ": sending " in line]
    assert [line.split(" (")[0] for line in sent] == [
        f"far: b: sending {spec.wheel}",
        f"far: b: sending {checkout}",
    ]
    assert not (place.cache("head") / "shipped").exists()

    again = place.made(spec)
    assert place.build(again, "far").reused
    assert not any(": sending " in line for line in lines(again))


def test_a_node_without_room_has_no_such_build_and_the_others_have(place: Place) -> None:
    news = place.made(a_wheel(place.wheel(FILES, "room")))

    assert place.trouble(news, "full").startswith("build b: needs about 5.0 GiB, and ")
    assert place.build(news, "head").digest == place.build(news, "far").digest
    assert {path.suffix for path in place.small.inside.glob("*/*")} <= {".lock"}


def test_an_interpreter_that_some_nodes_lack_is_their_trouble(place: Place) -> None:
    python = fake_vllm.environment(place.mine / "image")

    news = place.made(BuildSpec(name="b", interpreter=str(python)))

    assert place.build(news, "head").python == str(python)
    assert "is not there" in place.trouble(news, "far")


def test_a_build_that_nobody_can_make_is_the_user_s_mistake_said_once(place: Place) -> None:
    spec = a_wheel(place.wheel(FILES, "torn"), Path("/no/such/checkout"))
    work = place.begun(spec)

    with pytest.raises(ConfigError, match="can't be made as it is described") as error:
        first(work, place.nodes, lambda _: None, lambda: None)

    assert error.value.mistakes == (
        "build b: checkout /no/such/checkout has no vllm/__init__.py: name a checkout's root",
    )


def test_nodes_that_share_a_cache_make_a_build_once(place: Place, tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.1)\n"
    wheel = place.wheel(FILES | {"vllm/entrypoints/llm.py": waits}, "shared")
    work = place.begun(a_wheel(wheel), str(tmp_path / "cache"))

    said = until(work, lambda news: any(WAITING in line for line in lines(news)))
    go.touch()
    news = until(work, lambda _: not work.pending())

    assert not [each for each in said if not isinstance(each, str)]
    ends = [each for each in news if isinstance(each, BuildReady)]
    assert sorted(end.build.reused for end in ends) == [False, True, True]
    assert len({end.build.python for end in ends}) == 1


def test_a_node_that_dies_while_it_makes_a_build_is_a_trouble_of_its_own(place: Place) -> None:
    slow = a_wheel(place.wheel(SLOW, "slow"))
    other = replace(a_wheel(place.wheel(FILES, "quick")), name="other")
    work = Provisioning(caches.USUAL)
    far = place.nodes["far"]
    work.begin(far, [slow, other], deadline_s=60)
    work.begin(place.nodes["head"], [other], deadline_s=60)
    until(work, lambda news: "far: b: importing vLLM for the first time" in news)
    began = time.monotonic()

    place.cluster.kill("far")
    news = until(work, lambda _: not work.pending())

    troubles = [each for each in news if isinstance(each, BuildTrouble)]
    assert [(each.node_id, each.key[1], each.whose) for each in troubles] == [
        (far.id, "b", "node"),
        (far.id, "other", "node"),
    ]
    assert time.monotonic() - began < 30
    assert place.cluster.processes("far", "entrypoints") == []
    place.cluster.add(next(kind for kind in place.cluster.nodes if kind.name == "far"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_while_builds_are_made_leaves_nothing_on_any_node(
    place: Place, drive: StartDriver, number: signal.Signals
) -> None:
    wheel = place.wheel(SLOW, f"ended-by-{number}")
    words = ("hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]")
    driver = drive(
        *words,
        "build.v0_32.release=null",
        f"build.v0_32.wheel={wheel}",
        f"cluster.address={place.cluster.address}",
        environment=place.cluster.environment(),
    )
    driver.wait_for("v0_32: importing vLLM for the first time")

    driver.process.send_signal(number)

    assert driver.wait() in {130, -number}
    driver.until(lambda: not busy(place), "the build is still being made")
    assert "Traceback" not in driver.output


@pytest.mark.engine
def test_an_engine_runs_the_files_of_a_checkout_that_its_node_never_saw(
    place: Place, drive: StartDriver
) -> None:
    [config] = compose(["build=[v0_32_gpu]", "engine_mode=emulated", "suite.check=init"])
    cache = caches.folder(config.cache)
    base = provision(build_specs(config)["v0_32_gpu"], cache, print)
    init = next(Path(base.python).parents[1].glob("lib/*/site-packages/vllm/__init__.py"))
    files = {"vllm/__init__.py": init.read_text(), "vllm/of_the_user.py": ""}
    checkout = fake_vllm.write(place.mine / "of-release", files)

    driver = drive(
        *("hardware=[h100]", "model=[llama]", "backend=[auto]", "build=[v0_32_gpu]"),
        *("engine_mode=emulated", "suite.check=init", f"cache={cache}"),
        f"build.v0_32_gpu.checkout={checkout}",
        f"cluster.address={place.cluster.address}",
        environment=place.cluster.environment(),
    )

    assert driver.wait() == 0, driver.output
    [record] = driver.lines()
    assert record["attempt"]["placement"]["labels"]["ray.io/node-id"] == place.nodes["far"].id
    assert [*record["build"]["sources"]] == ["vllm/of_the_user.py"]


def busy(place: Place) -> list[int]:
    """Processes that make a build."""
    return [
        pid
        for name in ("head", "far")
        for part in ("ray::provision", "vllm.entrypoints")
        for pid in place.cluster.processes(name, part)
    ]


def lines(news: list[BuildNews]) -> list[str]:
    return [each for each in news if isinstance(each, str)]


def until(work: Provisioning, done: Callable[[list[BuildNews]], bool]) -> list[BuildNews]:
    news: list[BuildNews] = []
    end = time.monotonic() + 120
    while not done(news):
        assert time.monotonic() < end, news
        news += work.news()
        time.sleep(0.1)
    return news
