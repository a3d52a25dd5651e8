"""NVIDIA devices, through NVML; without it, as far as the driver's files go."""

import os
import re
from pathlib import Path

from jobs.contract.nodes import Device
from jobs.node.vendors.sight import Sight, card_label, on_the_bus, text

PCI_VENDOR = "0x10de"
VERSION = Path("proc/driver/nvidia/version")
CARDS = Path("proc/driver/nvidia/gpus")


def look(root: Path) -> Sight:
    try:
        found = _by_nvml()
    except _NoNvml as failure:
        return _by_files(root, str(failure))
    return found


def used_mib() -> dict[str, int]:
    try:
        import pynvml
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return {}
    try:
        return {name: _used_mib(name) for name in _visible(pynvml.nvmlDeviceGetCount())}
    except pynvml.NVMLError:
        return {}
    finally:
        pynvml.nvmlShutdown()


class _NoNvml(Exception):  # noqa: N818  it is an answer, not an error
    """The argument tells why, for a person."""


def _by_nvml() -> Sight:
    try:
        import pynvml
    except ImportError:
        raise _NoNvml(
            "nvidia-ml-py is not installed in Ray's Python: install it there, or set the labels "
            "vm.card and vm.arch"
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise _NoNvml(f"NVML does not start, though the driver is there ({error})") from None
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return Sight(
            devices=[_device(handle) for handle in handles],
            driver=pynvml.nvmlSystemGetDriverVersion(),
        )
    except pynvml.NVMLError as error:
        raise _NoNvml(f"NVML can't read a device ({error}): see `nvidia-smi` there") from None
    finally:
        pynvml.nvmlShutdown()


def _by_files(root: Path, failure: str) -> Sight:
    """A machine without such devices has no trouble for want of NVML."""
    version = text(root / VERSION)
    if version is None:
        count = on_the_bus(root, PCI_VENDOR)
        without = f"{count} NVIDIA devices are on its PCI bus and no driver is loaded: install it"
        return Sight(notes=[without] if count else [])
    shown = len([*(root / "dev").glob("nvidia[0-9]*")])
    if not shown:
        # A container that was given none of the machine's devices.
        return Sight()
    cards = [_of_file(file) for file in sorted((root / CARDS).glob("*/information"))]
    driver = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", f"{version} ")
    return Sight(
        devices=[*cards, *[Device()] * shown][:shown],
        driver=driver[1] if driver else None,
        notes=[failure],
    )


def _of_file(file: Path) -> Device:
    found = re.search(r"^Model:\s*(.+)$", text(file) or "", re.MULTILINE)
    return Device(product=found[1], card=card_label(found[1])) if found else Device()


def _visible(count: int) -> list[str]:
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(index) for index in range(count)] if shown is None else shown.split(",")


def _used_mib(name: str) -> int:
    import pynvml

    by_name = pynvml.nvmlDeviceGetHandleByUUID
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else by_name(name)
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20


def _device(handle: object) -> Device:
    import pynvml

    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    product: str = pynvml.nvmlDeviceGetName(handle)
    return Device(
        product=product,
        card=card_label(product),
        arch=f"sm_{major}{minor}",
        memory_gib=_memory_gib(handle),
    )


def _memory_gib(handle: object) -> float | None:
    """None where the card has none of its own, as a GB10."""
    import pynvml

    try:
        return float(pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30)
    except pynvml.NVMLError:
        return None
