"""One module per kind of accelerator. To support another, add a module and a row below."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jobs.node.vendors import amd, nvidia


class Vendor(Protocol):
    """What a vendor's module provides; the modules themselves are the instances."""

    def devices(self) -> Sequence[tuple[str, str, float]]:
        """(product name, arch, memory in GiB) of each device; none without a driver."""
        ...

    def used_mib(self) -> dict[str, int]:
        """Memory in use on each device that this environment shows; none if it can't be read."""
        ...


VENDORS: dict[str, Vendor] = {"nvidia": nvidia, "amd": amd}


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    """What this machine has, in the words of our labels."""

    vendor: str
    card: str | None
    arch: str | None
    devices: int
    device_memory_gib: float
    memory_gib: float
    cpus: int

    @property
    def labels(self) -> dict[str, str]:
        """For Ray. Every node runs the CPU build, so every node carries `vm.cpu`."""
        known = {"vm.vendor": self.vendor, "vm.card": self.card, "vm.arch": self.arch}
        return {"vm.cpu": "yes"} | {name: value for name, value in known.items() if value}


def inventory() -> Inventory:
    vendor, found = next(
        ((name, found) for name, module in VENDORS.items() if (found := module.devices())),
        ("cpu", ()),
    )
    name, arch, memory = found[0] if found else (None, platform.machine(), 0.0)
    return Inventory(
        vendor=vendor,
        card=None if name is None else card_label(name),
        arch=arch,
        devices=len(found),
        device_memory_gib=memory,
        memory_gib=_memory_gib(),
        cpus=len(os.sched_getaffinity(0)),
    )


def card_label(product: str) -> str:
    """`NVIDIA H200` to `h200`, `AMD Instinct MI300X` to `mi300x`: as conf/hardware names cards."""
    skipped = {"nvidia", "amd", "geforce", "instinct", "radeon", "tesla"}
    words = [word for word in product.lower().split() if word not in skipped]
    return "_".join(words)


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
