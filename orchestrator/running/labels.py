"""
What a node is: by its operator's labels, and by what it saw of itself. Pure.

A label counts where it is set, and what is missing is filled in, at last by what conf/hardware
knows of the card. Where both say something else, no real cell of a card goes there, since nobody
knows which card it would meet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.contract.nodes import Device, NodeSeen
from orchestrator.asked.conf_files import nearest
from orchestrator.asked.config import Hardware

OURS = (
    "vm.cpu",
    "vm.vendor",
    "vm.card",
    "vm.arch",
    "vm.driver",
    "vm.memory_gib",
    "vm.count",
)
OF_A_CARD = ("vm.vendor", "vm.card", "vm.arch")
LEAST_DISK_GIB = 5.0
MEMORY_TOLERANCE = 0.1
"""Cards are sold by round figures: one of 80 GB has 79.6 GiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    labels: dict[str, str]
    """By which cells find the node."""

    driver: str | None
    device_memory_gib: float | None
    troubles: tuple[str, ...]
    """What is wrong with it and what to do, for a person."""


def described(
    labels: Mapping[str, str], gpus: int, seen: NodeSeen | None, cards: Sequence[Hardware]
) -> Described:
    """*gpus* is how many Ray counts; *seen* is None where the node did not answer."""
    seen = seen and _recognised(seen, cards)
    told = _told(seen) if seen else {}
    contradicted = {name: told[name] for name in told if not _agree(name, labels, told)}
    settled = _found(labels, gpus, seen) | dict(labels)
    if not contradicted.keys().isdisjoint(OF_A_CARD):
        settled = {name: value for name, value in settled.items() if name not in OF_A_CARD}
    return Described(
        labels=_of_card(settled.get("vm.card"), cards) | settled,
        driver=labels.get("vm.driver", told.get("vm.driver")),
        device_memory_gib=_number(labels.get("vm.memory_gib", told.get("vm.memory_gib"))),
        troubles=(
            *_mistakes(labels),
            *(_contradiction(name, labels[name], value) for name, value in contradicted.items()),
            *(_troubles(gpus, seen) if seen else ()),
        ),
    )


def _recognised(seen: NodeSeen, cards: Sequence[Hardware]) -> NodeSeen:
    """With the names of cards of which only the bus tells."""
    by_id = {card.pci_device: card.card for card in cards if card.pci_device}

    def named(device: Device) -> Device:
        return replace(device, card=device.card or by_id.get(device.pci_device or ""))

    return replace(seen, devices=tuple(map(named, seen.devices)))


def _of_card(name: str | None, cards: Sequence[Hardware]) -> dict[str, str]:
    found = next((card for card in cards if card.card == name), None) if name else None
    known = {"vm.vendor": found.vendor, "vm.arch": found.arch} if found else {}
    return {label: value for label, value in known.items() if value is not None}


def _mistakes(labels: Mapping[str, str]) -> Iterator[str]:
    for name in labels:
        if name.startswith("vm.") and name not in OURS:
            likely = nearest(name, OURS) or f" There are {', '.join(OURS)}."
            yield f"its label {name} means nothing to vllm-matrix.{likely}"
    if (memory := labels.get("vm.memory_gib")) is not None and _number(memory) is None:
        yield f"its label vm.memory_gib={memory} is no number of GiB, such as 80"


def _told(seen: NodeSeen) -> dict[str, str]:
    """In the words of labels. A machine without devices contradicts no operator's word of them."""
    if not seen.devices:
        return {}
    known = {
        "vm.vendor": seen.vendor,
        "vm.card": seen.card,
        "vm.arch": seen.arch,
        "vm.driver": seen.driver,
        "vm.memory_gib": _smallest_gib(seen),
        "vm.count": str(len(seen.devices)),
    }
    return {name: value for name, value in known.items() if value is not None}


def _found(labels: Mapping[str, str], gpus: int, seen: NodeSeen | None) -> dict[str, str]:
    """What may be filled in: nothing of the machine's processor to an operator's word of cards."""
    if seen is None:
        return {}
    is_of_cards = gpus > 0 or labels.get("vm.vendor", "cpu") != "cpu" or "vm.card" in labels
    return {"vm.cpu": "yes"} if is_of_cards and not seen.devices else seen.labels


def _smallest_gib(seen: NodeSeen) -> str | None:
    sizes = [device.memory_gib for device in seen.devices if device.memory_gib is not None]
    return f"{min(sizes):.1f}" if sizes else None


def _agree(name: str, labels: Mapping[str, str], told: Mapping[str, str]) -> bool:
    if name not in labels or labels[name] == told[name]:
        return True
    said, seen = _number(labels[name]), _number(told[name])
    if name != "vm.memory_gib" or said is None or seen is None:
        return False
    return abs(said - seen) <= MEMORY_TOLERANCE * seen


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _contradiction(name: str, said: str, seen: str) -> str:
    effect = ", so it takes no cell of a card" if name in OF_A_CARD else ""
    return (
        f"its label says {name}={said}, and {seen} is seen{effect}: start Ray there again with the "
        f"right label, or without it"
    )


def _troubles(gpus: int, seen: NodeSeen) -> Iterator[str]:
    yield from seen.notes
    cards = sorted({device.card or "unknown" for device in seen.devices})
    if len(cards) > 1:
        yield (
            f"it has several kinds of cards ({', '.join(cards)}), which Ray does not tell apart: "
            f"show Ray those of one kind by CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES"
        )
    count = len(seen.devices)
    # What is missing of AMD's, its note explains.
    if count and gpus != count and (gpus or not seen.notes):
        yield (
            f"Ray counts {gpus} GPUs, and {count} are seen: start Ray there again with "
            f"--num-gpus={count}, unless that is meant"
        )
    if seen.disk_free_gib < LEAST_DISK_GIB:
        yield (
            f"the disk of its cache {seen.cache} has {seen.disk_free_gib:.1f} GiB left: free some, "
            f"or set VLLM_MATRIX_CACHE to a folder on another disk"
        )
