"""Whether the disk has room for what is about to be made."""

import shutil
from pathlib import Path

from jobs.node.builds.errors import BuildNodeError

GIB = 2**30


def require(folder: Path, gib: float) -> None:
    free = shutil.disk_usage(folder).free / GIB
    if free < gib:
        raise BuildNodeError(
            f"needs about {gib:.1f} GiB, and {folder.parent} has {free:.1f} GiB free: "
            f"free some, or set `cache` to another disk"
        )
