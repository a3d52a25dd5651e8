"""NVIDIA's management library, as the module `pynvml`: it has the emulated card, so many times."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from jobs.contract.emulation import Card
from jobs.probe.emulation import count
from jobs.probe.emulation.architecture import capability

MODULES = ("pynvml", "vllm.third_party.pynvml")
"""vLLM has a copy of its own."""


class NVMLError(Exception):
    """What callers catch; it is never raised here."""


def contents(card: Card) -> Mapping[str, Any]:
    major, minor = capability(card.arch)
    return {
        "NVMLError": NVMLError,
        "NVML_P2P_CAPS_INDEX_NVLINK": 2,
        "NVML_P2P_STATUS_OK": 0,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "emulated",
        "nvmlDeviceGetCount": count.present,
        "nvmlDeviceGetHandleByIndex": int,
        "nvmlDeviceGetHandleByUUID": _index,
        "nvmlDeviceGetIndex": int,
        "nvmlDeviceGetUUID": _uuid,
        "nvmlDeviceGetName": lambda _: card.product,
        "nvmlDeviceGetCudaComputeCapability": lambda _: (major, minor),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(
            total=card.memory_bytes, free=card.memory_bytes, used=0
        ),
        "nvmlDeviceGetPciInfo": lambda index: SimpleNamespace(
            busId=f"00000000:{index:02X}:00.0", domain=0, bus=index, device=0
        ),
        "nvmlDeviceGetNumaNodeId": lambda _: 0,
        # All cards of a machine see each other: what vLLM makes of it is not asked yet.
        "nvmlDeviceGetP2PStatus": lambda *_: 0,
    }


def _uuid(index: int) -> str:
    return f"GPU-emulated-{index}"


def _index(uuid: str | bytes) -> int:
    text = uuid.decode() if isinstance(uuid, bytes) else uuid
    return int(text.rsplit("-", 1)[-1])
