"""What this node has: its devices, its room, the builds that are ready."""

import json
import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from jobs.contract.nodes import Device, NodeSeen
from jobs.node import caches
from jobs.node.builds import store
from jobs.node.vendors import VENDORS
from jobs.node.vendors.sight import Sight


def look(cache: str = caches.USUAL, root: Path = Path("/")) -> NodeSeen:
    """Each source may fail: what it would have told is missing, and a note says so."""
    sights = {name: _sight(name, root) for name in VENDORS}
    vendor = next((name for name, sight in sights.items() if sight.devices), "cpu")
    here = sights.get(vendor, Sight())
    folder = caches.folder(cache)
    return NodeSeen(
        host=platform.node(),
        python=platform.python_version(),
        vendor=vendor,
        arch=_arch(here.devices) if here.devices else platform.machine(),
        devices=tuple(here.devices),
        driver=here.driver,
        cpus=len(os.sched_getaffinity(0)),
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        cache=str(folder),
        disk_free_gib=_free_gib(folder),
        builds=_builds(folder),
        notes=tuple(note for sight in sights.values() for note in sight.notes),
    )


def _sight(vendor: str, root: Path) -> Sight:
    try:
        return VENDORS[vendor].look(root)
    # Drivers and their libraries have other ideas with every version.
    except Exception as error:  # noqa: BLE001
        said = f"{type(error).__name__}: {error}"
        return Sight(notes=[f"its {vendor} devices can't be read ({said}): set the labels vm.*"])


def _arch(devices: Sequence[Device]) -> str | None:
    known = {device.arch for device in devices}
    return known.pop() if len(known) == 1 else None


def _free_gib(folder: Path) -> float:
    """Of the disk on which the cache is, or will be made."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free / 2**30


def _builds(cache: Path) -> tuple[str, ...]:
    """By version. Others use the cache as well: what goes while it is read was not ready."""
    manifests = (cache / "builds").glob(f"*/{store.MANIFEST}")
    return tuple(sorted({name for file in manifests if (name := _build(file))}))


def _build(manifest: Path) -> str | None:
    try:
        said = json.loads(manifest.read_text())
        version, python = str(said["vllm_version"]), Path(said["python"])
    except (OSError, ValueError, TypeError, LookupError):
        return None
    if not python.exists():
        return None
    return f"{version} emulated" if said.get("operators") else version
