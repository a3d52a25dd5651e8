import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE_MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "jobs").rglob("*.py")
    if file.stem != "__init__" and not {"site", "models"} & set(file.parts)
)


@pytest.mark.parametrize("module", NODE_MODULES)
def test_node_code_imports_in_a_bare_interpreter(module: str) -> None:
    """-S leaves out site-packages: only the standard library is there."""
    subprocess.run(
        [sys.executable, "-S", "-c", f"import {module}"], check=True, cwd=ROOT, timeout=30
    )
