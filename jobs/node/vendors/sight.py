"""What can be seen of one vendor's devices."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.contract.nodes import Device

PCI = Path("sys/bus/pci/devices")
DISPLAY = "0x03"
"""The class of display controllers; accelerators without a screen have it too, or the next."""

ACCELERATOR = "0x12"

NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
BRANDS = {"nvidia", "amd", "geforce", "instinct", "radeon", "tesla", "ai"}
FORMS = re.compile(r"sxm\d*|oam|vf|ac|hbm\d\w*|\d+gb|blackwell|server|workstation|edition|graphics")
"""How it is mounted, lent or sold, which leaves the card the same."""

OTHER_NAMES = {"pro_r9700": "r9700", "8060s": "strix_halo"}
TWO_SIZES = re.compile(r"\bA100\b.*?(\d+)GB")
"""The one card that is sold with two sizes of memory under the same name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    devices: Sequence[Device] = ()
    driver: str | None = None
    notes: Sequence[str] = field(default_factory=tuple)


def on_the_bus(root: Path, vendor: str) -> int:
    """How many display controllers or accelerators of that PCI vendor the machine has."""
    places = [place for place in (root / PCI).glob("*") if text(place / "vendor") == vendor]
    kinds = [text(place / "class") or "" for place in places]
    return sum(kind.startswith((DISPLAY, ACCELERATOR)) for kind in kinds)


def text(file: Path) -> str | None:
    """None where there is no such file, or the driver does not give it."""
    try:
        return file.read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def card_label(product: str) -> str:
    """`NVIDIA H200` to `h200`, `AMD Instinct MI300X` to `mi300x`: as conf/hardware names cards."""
    if found := TWO_SIZES.search(product):
        return f"a100_{found[1]}"
    # AMD gives the same name to the two of a family: the first is the one that is sold.
    words = NOT_IN_A_NAME.split(product.split("/", maxsplit=1)[0].lower())
    left = [word for word in words if word and word not in BRANDS and not FORMS.fullmatch(word)]
    label = "_".join(left)
    return OTHER_NAMES.get(label, label)
