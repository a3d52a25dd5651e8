"""What a host is told of the card that it has to pretend."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from jobs.contract.asked import CellRequest, Deadlines, ProbeRequest
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.emulation import Card, PackageSet
from jobs.contract.terms import Check, EngineMode, Isolation
from jobs.node import environment
from jobs.node.errors import NodeError

OPENAI = PackageSet(name="vllm-openai", assumed=("flashinfer_cubin",))


def a_card(name: str = "h100", vendor: str = "nvidia") -> Card:
    return Card(
        name=name,
        vendor=vendor,
        product=name,
        arch="sm_90",
        memory_bytes=1,
        compute_units=1,
        shared_memory_bytes=1,
    )


def a_request(folder: Path, card: Card | None) -> CellRequest:
    return CellRequest(
        probe=ProbeRequest(
            cell_id="h100-emulated/b/c/d",
            attempt=1,
            check=Check.INIT,
            engine_mode=EngineMode.EMULATED,
            engine_args={},
            card=card,
        ),
        build=ProvisionedBuild(
            name="b",
            digest="d",
            python="python",
            path_entries=("overlay",),
            vllm_version="0.32.0",
            torch_version="2.13.0",
            packages={"nvidia": OPENAI},
            package_folders={"nvidia": "packages"},
            operators="operators.json",
        ),
        env={},
        isolation=Isolation.WARM,
        deadlines=Deadlines(attempt_s=1, quiet_s=1),
        workdir=str(folder),
        cache=str(folder),
    )


def test_it_is_the_card_with_the_packages_of_its_vendors_image(tmp_path: Path) -> None:
    env = environment.of_host(a_request(tmp_path, a_card()))

    told = json.loads(env["MATRIX_EMULATION"])
    assert told["card"]["name"] == "h100"
    assert told["packages"]["name"] == "vllm-openai"
    assert told["operators"] == "operators.json"
    assert env["PYTHONPATH"].split(os.pathsep)[:2] == ["overlay", "packages"]


def test_another_vendors_packages_are_not_on_the_path(tmp_path: Path) -> None:
    env = environment.of_host(a_request(tmp_path, a_card("mi300x", "amd")))

    assert json.loads(env["MATRIX_EMULATION"])["packages"]["name"] == "none"
    assert "packages" not in env["PYTHONPATH"].split(os.pathsep)


def test_without_a_card_nothing_is_pretended(tmp_path: Path) -> None:
    env = environment.of_host(a_request(tmp_path, None))

    assert "MATRIX_EMULATION" not in env
    assert "packages" not in env["PYTHONPATH"].split(os.pathsep)


def test_a_build_without_operators_serves_no_card(tmp_path: Path) -> None:
    request = a_request(tmp_path, a_card())
    real = dataclasses.replace(request, build=dataclasses.replace(request.build, operators=None))

    with pytest.raises(NodeError, match="build b is none for emulated engines"):
        environment.of_host(real)
