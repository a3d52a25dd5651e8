"""What torch says about its devices: answered from the card's description."""

import uuid
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Self

from jobs.contract.emulation import Card
from jobs.probe.emulation import count
from jobs.probe.emulation.architecture import capability
from jobs.probe.emulation.ledger import Ledger
from jobs.probe.emulation.limits import EmulationLacks

TOOLKITS = {"nvidia": ("cuda", "13.0"), "amd": ("hip", "7.1.0")}
"""What torch would have been built with, where the environment's torch is for CPUs."""

WARP = {"nvidia": 32, "amd": 64}


def replace(card: Card, ledger: Ledger) -> None:
    import torch

    # These look at how torch was built, which has to be over before torch says otherwise.
    import torch._dynamo
    import torch._inductor.config
    import torch._inductor.utils

    name, version = TOOLKITS[card.vendor]
    ledger.replace(torch.version, name, getattr(torch.version, name) or version)
    ledger.replace_all(torch.cuda, _cuda(card))
    ledger.replace_all(torch.accelerator, _accelerator(card))
    native = torch._C  # noqa: SLF001  # what the public functions call
    ledger.replace(native, "_cuda_getDeviceCount", count.present)
    ledger.replace(native, "_cuda_getAllocatorBackend", lambda: "emulated")


class Stream:
    """Nothing runs, so everything is done at once."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        import torch

        self.device = torch.device("cuda:0")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise EmulationLacks(f"torch.cuda.{type(self).__name__}.{name}", "nothing runs here")

    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def synchronize(self) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def query(self) -> bool:
        return True


class Event(Stream):
    def record(self, stream: Any = None) -> None: ...
    def wait(self, stream: Any = None) -> None: ...

    def elapsed_time(self, _: Any) -> float:
        return 0.0


def properties(card: Card) -> SimpleNamespace:
    major, minor = capability(card.arch)
    return SimpleNamespace(
        name=card.product,
        major=major,
        minor=minor,
        # On NVIDIA's cards torch puts the name there.
        gcnArchName=card.arch if card.vendor == "amd" else card.product,
        total_memory=card.memory_bytes,
        multi_processor_count=card.compute_units,
        warp_size=WARP[card.vendor],
        shared_memory_per_block=min(card.shared_memory_bytes, 48 << 10),
        shared_memory_per_block_optin=card.shared_memory_bytes,
        shared_memory_per_multiprocessor=card.shared_memory_bytes,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        L2_cache_size=50 << 20,
        is_integrated=0,
        is_multi_gpu_board=0,
        uuid=uuid.UUID(int=0),
    )


def _cuda(card: Card) -> Mapping[str, Any]:
    described = properties(card)
    return {
        **_memory(),
        "_is_compiled": lambda: True,
        "_device_count_nvml": count.present,
        "_device_count_amdsmi": count.present,
        "is_available": lambda: True,
        "device_count": count.present,
        "current_device": lambda: 0,
        "set_device": _always(None),
        "get_device_capability": lambda _=None: (described.major, described.minor),
        "get_device_name": lambda _=None: card.product,
        "get_device_properties": lambda _=None: described,
        "can_device_access_peer": lambda *_: True,
        "is_current_stream_capturing": lambda: False,
        "graph_pool_handle": lambda: (0, 0),
        "mem_get_info": lambda _=None: (card.memory_bytes, card.memory_bytes),
        "manual_seed": _always(None),
        "manual_seed_all": _always(None),
        "synchronize": _always(None),
        "Stream": Stream,
        "Event": Event,
        "current_stream": lambda _=None: Stream(),
        "default_stream": lambda _=None: Stream(),
        "set_stream": _always(None),
        "stream": lambda _: Stream(),
    }


def _accelerator(card: Card) -> Mapping[str, Any]:
    import torch

    return {
        **_memory(),
        "empty_host_cache": _always(None),
        "is_available": lambda: True,
        "device_count": count.present,
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_device_index": lambda: 0,
        "set_device_index": _always(None),
        "get_memory_info": lambda _=None: (card.memory_bytes, card.memory_bytes),
        "synchronize": _always(None),
        "current_stream": lambda _=None: Stream(),
        "set_stream": _always(None),
    }


def _memory() -> Mapping[str, Any]:
    """Of torch's allocator, which never allocates."""
    return {
        "empty_cache": _always(None),
        "memory_allocated": _always(0),
        "memory_reserved": _always(0),
        "max_memory_allocated": _always(0),
        "reset_peak_memory_stats": _always(None),
        "memory_stats": lambda *_, **__: {},
    }


def _always(answer: Any) -> Callable[..., Any]:
    """A function of its own each time: torch's compiler tells functions apart by identity."""
    return lambda *_, **__: answer
