"""What deploy/ says fits what this project needs, as far as that can be seen without a cluster."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.asked import compose

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCHEMA = yaml.safe_load((Path(__file__).parent / "kuberay.schema.yaml").read_text())
SPECS = {"RayCluster": "cluster", "RayCronJob": "nightly"}
GPUS = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}


def manifests() -> Iterator[dict[str, Any]]:
    for file in sorted(DEPLOY.glob("kuberay/*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def of_kind(kind: str) -> dict[str, Any]:
    [found] = [manifest for manifest in manifests() if manifest["kind"] == kind]
    return found


def groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = of_kind("RayCluster")["spec"]["workerGroupSpecs"]
    return found


def pods() -> Iterator[dict[str, Any]]:
    cluster = of_kind("RayCluster")["spec"]
    for owner in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        yield owner["template"]["spec"]
    yield of_kind("RayCronJob")["spec"]["jobTemplate"]["submitterPodTemplate"]["spec"]


@pytest.mark.parametrize("kind", SPECS)
def test_no_field_of_a_manifest_is_misspelt(kind: str) -> None:
    manifest = of_kind(kind)

    assert manifest["apiVersion"] == "ray.io/v1"
    for name, value in (("metadata", manifest["metadata"]), (SPECS[kind], manifest["spec"])):
        jsonschema.validate(value, {**SCHEMA, "$ref": f"#/$defs/{name}"})


def test_the_cluster_runs_the_ray_that_this_project_is_tested_with() -> None:
    assert of_kind("RayCluster")["spec"]["rayVersion"] == metadata.version("ray")


def test_there_is_a_group_of_each_vendor_and_its_labels_are_a_card_of_ours() -> None:
    assert {group["labels"]["vm.vendor"] for group in groups()} == {*GPUS}
    for group in groups():
        labels = group["labels"]
        card = yaml.safe_load((ROOT / f"conf/hardware/{labels['vm.card']}.yaml").read_text())
        assert (card["vendor"], card["arch"]) == (labels["vm.vendor"], labels["vm.arch"])


def test_a_group_says_to_ray_how_many_cards_it_asks_of_kubernetes() -> None:
    for group in groups():
        [container] = group["template"]["spec"]["containers"]
        cards = container["resources"]["limits"][GPUS[group["labels"]["vm.vendor"]]]
        assert group["rayStartParams"]["num-gpus"] == cards


def test_every_mount_has_its_volume_and_every_claim_is_made() -> None:
    claims = of_kind("PersistentVolumeClaim")["metadata"]["name"]
    for pod in pods():
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= {*volumes}
        for volume in volumes.values():
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] == claims


def test_only_the_cluster_its_submitters_and_the_operator_are_let_in() -> None:
    policy = of_kind("NetworkPolicy")["spec"]
    cluster = of_kind("RayCluster")["metadata"]["name"]
    job = of_kind("RayCronJob")["spec"]["jobTemplate"]

    assert policy["podSelector"]["matchLabels"] == {"ray.io/cluster": cluster}
    assert job["clusterSelector"] == {"ray.io/cluster": cluster}
    selectors = [who["podSelector"] for rule in policy["ingress"] for who in rule["from"][:1]]
    assert selectors == [
        {"matchLabels": {"ray.io/cluster": cluster}},
        {"matchLabels": job["submitterPodTemplate"]["metadata"]["labels"]},
    ]


def test_the_nightly_gate_is_a_command_that_we_understand() -> None:
    entrypoint = of_kind("RayCronJob")["spec"]["jobTemplate"]["entrypoint"]
    program, command, *words = shlex.split(entrypoint)

    assert (program, command) == ("vllm-matrix", "run")
    compose.compose(words)


def test_every_secret_is_a_reference() -> None:
    text = "\n".join(file.read_text() for file in DEPLOY.rglob("*") if file.is_file())

    assert not re.search(r"(?i)token[\"']?\s*[:=]\s*[\"']?[0-9a-f]{16}", text)
    for pod in pods():
        for variable in [each for one in pod["containers"] for each in one.get("env", [])]:
            if "TOKEN" in variable["name"]:
                assert "secretKeyRef" in variable["valueFrom"]


@pytest.mark.parametrize("script", [*DEPLOY.rglob("*.sbatch"), ROOT / "scripts/cluster-demo"])
def test_a_script_is_bash(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)
