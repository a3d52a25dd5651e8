"""AMD's management library, as the module `amdsmi`: it has the emulated card, so many times."""

import enum
from collections.abc import Mapping
from typing import Any

from jobs.contract.emulation import Card
from jobs.probe.emulation import count

MODULE = "amdsmi"


class AmdSmiException(Exception):  # noqa: N818  # the library's name
    """What callers catch; it is never raised here."""


class AmdSmiInitFlags(enum.IntEnum):
    INIT_AMD_GPUS = 2


class AmdSmiMemoryType(enum.IntEnum):
    VRAM = 0


def contents(card: Card) -> Mapping[str, Any]:
    return {
        "AmdSmiException": AmdSmiException,
        "AmdSmiInitFlags": AmdSmiInitFlags,
        "AmdSmiMemoryType": AmdSmiMemoryType,
        "amdsmi_init": lambda *_: None,
        "amdsmi_shut_down": lambda: None,
        "amdsmi_get_processor_handles": lambda: list(range(count.present())),
        "amdsmi_get_gpu_asic_info": lambda _: {
            "market_name": card.product,
            "vendor_name": "AMD",
            "target_graphics_version": card.arch,
            "device_id": card.pci_device or "",
            "num_compute_units": card.compute_units,
        },
        "amdsmi_get_gpu_device_uuid": lambda handle: f"emulated-{handle}",
        "amdsmi_get_gpu_memory_total": lambda *_: card.memory_bytes,
        # One hop over XGMI (2), as in a machine of eight.
        "amdsmi_topo_get_link_type": lambda *_: {"hops": 1, "type": 2},
        "amdsmi_topo_get_numa_node_number": lambda _: 0,
    }
