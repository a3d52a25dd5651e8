"""What the nodes of a pretended cluster have, as far as Ray and our labels tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeKind:
    """What a node pretends to be."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    cpus: int = 1
    memory_gib: float = 3.0
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    """Before the command line that starts it: what makes it see other files than the others."""


def card(vendor: str, name: str, arch: str, *, count: int, gib: int) -> dict[str, str]:
    """The labels that an operator gives to a node with accelerators."""
    return {
        "vm.cpu": "yes",
        "vm.vendor": vendor,
        "vm.card": name,
        "vm.arch": arch,
        "vm.count": str(count),
        "vm.memory_gib": str(gib),
    }


HEAD = NodeKind(name="head", labels={"vm.cpu": "yes"})
H100 = NodeKind(name="h100", gpus=8, labels=card("nvidia", "h100", "sm_90", count=8, gib=80))
H200 = NodeKind(name="h200", gpus=4, labels=card("nvidia", "h200", "sm_90", count=4, gib=141))
MI300X = NodeKind(name="mi300x", gpus=8, labels=card("amd", "mi300x", "gfx942", count=8, gib=192))
BIG_CPU = NodeKind(name="big-cpu", cpus=2, memory_gib=5.0, labels={"vm.cpu": "yes"})

FIVE = (HEAD, H100, H200, MI300X, BIG_CPU)
