"""Which code this is: versions, where it was imported from, hashes of its files."""

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch",
    "transformers",
    "triton",
    "flashinfer-python",
    "flash-attn",
    "aiter",
    "deep-gemm",
)
"""Packages that decide which backends there are."""

MISSING = "missing"


def read(sources: Iterable[str]) -> dict[str, Any]:
    """By the report's fields. The hashes are of what `import vllm` took: proof of a patch."""
    import vllm

    folder = Path(vllm.__file__).parent
    return {
        "versions": {
            "vllm": str(vllm.__version__),
            "python": platform.python_version(),
            **_installed(),
        },
        "vllm_path": str(folder),
        "sources": {source: _sha256(folder.parent / source) for source in sources},
    }


def _installed() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else MISSING
