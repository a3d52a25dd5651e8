"""
AMD devices, through the amdsmi that came with the node's ROCm: it must match the driver.

Without it, the driver's files tell nearly as much, but Ray counts no device.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from jobs.contract.nodes import Device
from jobs.node.vendors.sight import Sight, card_label, on_the_bus, text

PCI_VENDOR = "0x1002"
DRIVERS_FILES = Path("/sys/class/drm")
TOPOLOGY = Path("sys/class/kfd/kfd/topology/nodes")
VERSION = Path("sys/module/amdgpu/version")


def look(root: Path) -> Sight:
    try:
        devices = _by_amdsmi()
    except _NoAmdsmi as failure:
        return _by_files(root, str(failure))
    return Sight(devices=devices, driver=text(root / VERSION))


def used_mib() -> dict[str, int]:
    """From the driver's own files, which need no library, in the order of the bus."""
    files = {file.resolve() for file in DRIVERS_FILES.glob("card*/device/mem_info_vram_used")}
    shown = os.environ.get("ROCR_VISIBLE_DEVICES") or os.environ.get("HIP_VISIBLE_DEVICES")
    used: dict[str, int] = {}
    for index, file in enumerate(sorted(files)):
        if shown is None or str(index) in shown.split(","):
            with suppress(OSError):  # a driver that is being reset
                used[str(index)] = int(file.read_text()) >> 20
    return used


class _NoAmdsmi(Exception):  # noqa: N818  it is an answer, not an error
    """The argument tells why, for a person."""


def _by_amdsmi() -> list[Device]:
    try:
        import amdsmi
    except (ImportError, OSError):
        raise _NoAmdsmi(
            "amdsmi is not installed in Ray's Python, so Ray counts no AMD device here: install "
            "the one that came with the node's ROCm, and start Ray again"
        ) from None
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        raise _NoAmdsmi(f"amdsmi does not start ({error}): see `amd-smi list` there") from None
    try:
        return [_device(handle) for handle in amdsmi.amdsmi_get_processor_handles()]
    except amdsmi.AmdSmiException as error:
        raise _NoAmdsmi(f"amdsmi can't read a device ({error}): see `amd-smi list`") from None
    finally:
        amdsmi.amdsmi_shut_down()


def _by_files(root: Path, failure: str) -> Sight:
    """A machine without such devices has no trouble for want of amdsmi."""
    driver = text(root / VERSION)
    if not (root / TOPOLOGY).is_dir():
        count = on_the_bus(root, PCI_VENDOR)
        without = f"{count} AMD devices are on its PCI bus and no driver is loaded: install amdgpu"
        return Sight(notes=[without] if count else [])
    if not (root / "dev" / "kfd").exists():
        # A container that was given none of the machine's devices.
        return Sight()
    files = sorted((root / TOPOLOGY).glob("*/properties"), key=lambda file: int(file.parent.name))
    devices = [found for file in files if (found := _of_file(root, file))]
    return Sight(devices=devices, driver=driver, notes=[failure] if devices else [])


def _of_file(root: Path, file: Path) -> Device | None:
    """None for a processor, and for a device that this container was not given."""
    said = dict(re.findall(r"^(\w+) (\d+)$", text(file) or "", re.MULTILINE))
    version = int(said.get("gfx_target_version", 0))
    if not version:
        return None
    place = root / "sys/class/drm" / f"renderD{said.get('drm_render_minor')}" / "device"
    product, size = text(place / "product_name"), text(place / "mem_info_vram_total")
    return Device(
        product=product,
        card=card_label(product) if product else None,
        arch=f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}",
        memory_gib=int(size) / 2**30 if size else None,
        pci_device=text(place / "device"),
    )


def _device(handle: object) -> Device:
    import amdsmi

    asic = amdsmi.amdsmi_get_gpu_asic_info(handle)
    return Device(
        product=asic["market_name"],
        card=card_label(asic["market_name"]),
        arch=asic["target_graphics_version"],
        memory_gib=amdsmi.amdsmi_get_gpu_vram_info(handle)["vram_size"] / 1024,
    )
