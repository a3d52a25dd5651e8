"""`vllm-matrix nodes` on a real cluster, from outside of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import HEAD, MI300X, NodeKind

pytestmark = pytest.mark.ray

PLAIN = NodeKind(name="plain", environment={"VLLM_MATRIX_CACHE": "/nowhere/at-all"})
TYPO = NodeKind(name="typo", gpus=2, labels={"vm.vendor": "nvidia", "vm.crad": "h100"})
UNKNOWN = NodeKind(name="unknown", gpus=1, labels={"vm.vendor": "nvidia", "vm.card": "h1000"})

TOKEN = "a" * 64
ANOTHER = "b" * 64
ELSEWHERE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
"""As a machine that reaches the cluster and runs nothing of it."""

GUARDED = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}


@pytest.fixture(scope="module")
def mixed() -> Iterator[MixedCluster]:
    with MixedCluster([HEAD, MI300X, PLAIN, TYPO, UNKNOWN]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def guarded() -> Iterator[MixedCluster]:
    with MixedCluster([HEAD], environment=GUARDED) as cluster:
        yield cluster


def nodes(
    cluster: MixedCluster,
    *words: str,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orchestrator", "nodes", "--address", cluster.address]
    return subprocess.run(
        [*prefix, *command, *words],
        env=environment or cluster.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def stranger(home: Path, **more: str) -> dict[str, str]:
    """Somebody who was told nothing of the cluster."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**ours, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "HOME": str(home), **more}


def test_nodes_are_shown_with_what_is_wrong_with_them(mixed: MixedCluster) -> None:
    shown = nodes(mixed)

    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert [line.split()[:6] for line in lines if line.startswith(" mi300x")] == [
        ["mi300x", "amd", "mi300x", "(192", "GiB)", "gfx942"]
    ]
    assert "typo: its label vm.crad means nothing to vllm-matrix. Did you mean" in shown.stdout
    assert 'unknown: no file of conf/hardware has its card "h1000"' in shown.stdout
    assert "authentication: off, and nobody but this machine reaches the cluster" in shown.stdout


def test_a_node_without_labels_is_described_by_what_it_saw(mixed: MixedCluster) -> None:
    shown = json.loads(nodes(mixed, "--format", "json").stdout)

    there = {node["name"]: node for node in shown["nodes"]}
    assert there["plain"]["labels"]["vm.cpu"] == "yes"
    assert there["plain"]["vendor"] == "cpu"
    assert there["plain"]["builds"] == []
    assert there["plain"]["free"]["cpus"] == 1
    assert there["mi300x"]["free"]["devices"] == 8
    assert shown["authentication"] == "loopback"


def test_a_machine_that_is_no_node_is_told_how_to_get_there(mixed: MixedCluster) -> None:
    shown = nodes(mixed, prefix=ELSEWHERE)

    assert shown.returncode == 4
    assert f"{mixed.address} answers, and this machine is no node of that cluster" in shown.stderr
    assert "vllm-matrix submit" in shown.stderr


def test_the_cluster_s_token_opens_it(guarded: MixedCluster) -> None:
    shown = nodes(guarded)

    assert shown.returncode == 0, shown.stderr
    assert "head" in shown.stdout
    assert "authentication is off" not in shown.stdout


@pytest.mark.parametrize(
    ("told", "next_step"),
    [
        ({}, "set RAY_AUTH_MODE=token"),
        ({"RAY_AUTH_MODE": "token"}, "has no token: put the cluster's into"),
        ({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": ANOTHER}, "is not the cluster's"),
    ],
    ids=["no-token", "mode-without-token", "wrong-token"],
)
def test_whoever_lacks_the_token_is_told_where_it_goes(
    told: dict[str, str], next_step: str, guarded: MixedCluster, tmp_path: Path
) -> None:
    shown = nodes(guarded, environment=stranger(tmp_path, **told))

    assert shown.returncode == 4
    assert next_step in shown.stderr
    assert "Traceback" not in shown.stderr
