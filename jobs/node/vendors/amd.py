"""AMD devices, through the amdsmi that came with the node's ROCm: it must match the driver."""

import os
from contextlib import suppress
from pathlib import Path

DRIVERS_FILES = Path("/sys/class/drm")


def devices() -> list[tuple[str, str, float]]:
    try:
        import amdsmi
    except (ImportError, OSError):
        return []
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException:
        return []
    try:
        return [_device(handle) for handle in amdsmi.amdsmi_get_processor_handles()]
    finally:
        amdsmi.amdsmi_shut_down()


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


def _device(handle: object) -> tuple[str, str, float]:
    import amdsmi

    asic = amdsmi.amdsmi_get_gpu_asic_info(handle)
    memory = amdsmi.amdsmi_get_gpu_vram_info(handle)["vram_size"] / 1024
    return asic["market_name"], asic["target_graphics_version"], memory
