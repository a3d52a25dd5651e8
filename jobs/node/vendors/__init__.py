"""One module per kind of accelerator. To support another, add a module and a row below."""

from pathlib import Path
from typing import Protocol

from jobs.node.vendors import amd, nvidia
from jobs.node.vendors.sight import Sight


class Vendor(Protocol):
    """What a vendor's module provides; the modules themselves are the instances."""

    def look(self, root: Path) -> Sight:
        """By its library, or else by the driver's files below *root*."""
        ...

    def used_mib(self) -> dict[str, int]:
        """Memory in use on each device that this environment shows; none if it can't be read."""
        ...


VENDORS: dict[str, Vendor] = {"nvidia": nvidia, "amd": amd}
