import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.contract.nodes import Device
from jobs.node import inventory
from jobs.node.vendors import VENDORS
from jobs.node.vendors.sight import card_label
from orchestrator.asked import catalogue

HARDWARE = Path(__file__).parents[2] / "conf" / "hardware"
CARDS = [
    entry
    for file in sorted(HARDWARE.glob("*.yaml"))
    if "product" in (entry := yaml.safe_load(file.read_text()))
]
NVIDIA_VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
    "GCC version:  gcc version 13.3.0\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Of a machine, as its drivers describe it in files."""
    return tmp_path / "root"


def write(file: Path, text: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def on_the_bus(root: Path, vendor: str, kind: str = "0x030200") -> None:
    slot = root / "sys/bus/pci/devices/0000:01:00.0"
    write(slot / "vendor", f"{vendor}\n")
    write(slot / "class", f"{kind}\n")


def nvidia(root: Path, *, shown: int = 2) -> None:
    write(root / "proc/driver/nvidia/version", NVIDIA_VERSION)
    for number in range(shown):
        write(root / "dev" / f"nvidia{number}")
        file = root / f"proc/driver/nvidia/gpus/0000:0{number}:00.0/information"
        write(file, "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 42\n")


def amd(root: Path) -> None:
    """A processor and one accelerator."""
    write(root / "dev/kfd")
    write(root / "sys/module/amdgpu/version", "6.12.12\n")
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    write(nodes / "0/properties", "cpu_cores_count 64\ngfx_target_version 0\n")
    write(nodes / "1/properties", "gfx_target_version 90402\ndrm_render_minor 128\n")
    card = root / "sys/class/drm/renderD128/device"
    write(card / "product_name", "AMD Instinct MI300X OAM\n")
    write(card / "mem_info_vram_total", f"{192 << 30}\n")


@pytest.mark.parametrize("entry", CARDS, ids=lambda entry: entry["card"])
def test_a_product_is_the_card_that_conf_knows(entry: dict[str, Any]) -> None:
    assert card_label(entry["product"]) == entry["card"]


@pytest.mark.parametrize(
    ("product", "card"),
    [
        ("NVIDIA A100 80GB PCIe", "a100_80"),
        ("NVIDIA H100 PCIe", "h100_pcie"),
        ("AMD Instinct MI300X VF", "mi300x"),
        ("NVIDIA H200 NVL", "h200_nvl"),
    ],
)
def test_the_same_card_has_several_names_and_another_has_its_own(product: str, card: str) -> None:
    assert card_label(product) == card


def test_a_machine_without_devices_has_nothing_to_note(root: Path) -> None:
    seen = inventory.look(root=root)

    assert (seen.vendor, seen.devices, seen.notes) == ("cpu", (), ())
    assert seen.labels["vm.cpu"] == "yes"


def test_without_nvml_the_driver_s_files_tell_the_card(root: Path) -> None:
    nvidia(root)

    seen = inventory.look(root=root)

    assert seen.devices == (Device(product="NVIDIA H100 80GB HBM3", card="h100"),) * 2
    assert seen.driver == "580.95.05"
    assert "arch" not in " ".join(seen.labels)
    assert len(seen.notes) == 1


def test_without_amdsmi_the_driver_s_files_tell_the_card(root: Path) -> None:
    amd(root)

    seen = inventory.look(root=root)

    [device] = seen.devices
    assert (device.card, device.arch, device.memory_gib) == ("mi300x", "gfx942", 192)
    assert seen.driver == "6.12.12"
    assert "amdsmi is not installed in Ray's Python, so Ray counts no AMD device" in seen.notes[0]


def test_an_amd_device_without_a_name_has_its_id_on_the_bus(root: Path) -> None:
    amd(root)
    card = root / "sys/class/drm/renderD128/device"
    (card / "product_name").unlink()
    write(card / "device", "0x74a1\n")

    [device] = inventory.look(root=root).devices
    assert (device.card, device.pci_device) == (None, "0x74a1")
    assert any(known.pci_device == device.pci_device for known in catalogue.cards())


def test_a_container_that_was_given_no_device_has_none(root: Path) -> None:
    nvidia(root, shown=0)
    on_the_bus(root, "0x10de")

    seen = inventory.look(root=root)

    assert (seen.vendor, seen.notes) == ("cpu", ())


@pytest.mark.parametrize(("vendor", "name"), [("0x10de", "NVIDIA"), ("0x1002", "AMD")])
def test_devices_without_a_driver_are_noted(root: Path, vendor: str, name: str) -> None:
    on_the_bus(root, vendor)

    [note] = inventory.look(root=root).notes

    assert note.startswith(f"1 {name} devices are on its PCI bus and no driver is loaded")


def test_what_is_no_display_is_no_device(root: Path) -> None:
    on_the_bus(root, "0x1002", kind="0x060400")

    assert not inventory.look(root=root).notes


def test_builds_whose_manifest_and_interpreter_are_there_are_ready(tmp_path: Path) -> None:
    python = tmp_path / "python"
    write(python)
    real = {"vllm_version": "0.32.0", "python": str(python), "operators": None}
    builds = tmp_path / "cache" / "builds"
    write(builds / "a" / "manifest.json", json.dumps(real))
    write(builds / "b" / "manifest.json", json.dumps(real | {"operators": "there"}))
    write(builds / "c" / "manifest.json", json.dumps(real | {"python": "/gone"}))
    write(builds / "d" / "manifest.json", '{"vllm_ver')
    write(builds / "being-made" / "env")

    assert inventory.look(str(tmp_path / "cache")).builds == ("0.32.0", "0.32.0 emulated")


def test_a_library_that_answers_in_its_own_way_costs_the_devices_and_nothing_else(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Path) -> None:
        raise KeyError("target_graphics_version")

    monkeypatch.setattr(VENDORS["amd"], "look", broken)

    seen = inventory.look(str(root), root)

    assert seen.cpus > 0
    assert "its amd devices can't be read (KeyError: 'target_graphics_version')" in seen.notes[0]
