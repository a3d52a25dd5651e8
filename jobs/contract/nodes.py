"""What a node saw of itself, in the words of our labels."""

from dataclasses import dataclass
from typing import Any, ClassVar

from jobs.contract.terms import STRICT


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """An accelerator; what its driver does not tell is None."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    product: str | None = None
    """As its driver names it."""

    card: str | None = None
    """As conf/hardware names it."""

    arch: str | None = None
    memory_gib: float | None = None
    pci_device: str | None = None
    """Its id on the bus, where that may have to tell the card."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSeen:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    host: str
    python: str
    vendor: str
    """`cpu` where there is no device."""

    arch: str | None
    """Of all its devices, or of the machine where there are none; None if they differ."""

    devices: tuple[Device, ...] = ()
    driver: str | None = None
    cpus: int
    memory_gib: float
    cache: str
    disk_free_gib: float
    builds: tuple[str, ...] = ()
    """Versions of vLLM that are ready in the cache."""

    notes: tuple[str, ...] = ()
    """Of each source that failed, and what to do about it."""

    @property
    def card(self) -> str | None:
        """Of all its devices; None if they differ."""
        cards = {device.card for device in self.devices}
        return cards.pop() if len(cards) == 1 else None

    @property
    def labels(self) -> dict[str, str]:
        """For Ray. Every node runs the CPU build, so every node carries `vm.cpu`."""
        known = {"vm.vendor": self.vendor, "vm.card": self.card, "vm.arch": self.arch}
        return {"vm.cpu": "yes"} | {name: value for name, value in known.items() if value}
