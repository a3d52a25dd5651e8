import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE_MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "jobs").rglob("*.py")
    if file.stem != "__init__" and not {"site", "models"} & set(file.parts)
)


def test_node_code_imports_in_a_bare_interpreter() -> None:
    """-S leaves out site-packages: only the standard library is there."""
    code = "\n".join(f"import {module}" for module in NODE_MODULES)
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd=ROOT, timeout=30)
