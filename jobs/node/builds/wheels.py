"""A wheel file that a build names."""

import zipfile
from pathlib import Path

from jobs.node.builds.errors import BuildSpecError


def find(name: str) -> Path:
    wheel = Path(name).expanduser().absolute()
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise BuildSpecError(f"wheel {name} is not a .whl file on this machine")
    if not zipfile.is_zipfile(wheel):
        raise BuildSpecError(f"wheel {name} is damaged, or was downloaded only in part")
    return wheel
