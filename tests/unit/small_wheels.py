"""Wheels of a few lines each, and a vLLM for GPUs among them, for the real uv to install."""

import zipfile
from pathlib import Path

LIBRARY = b"\x7fELF"

SCHEMAS = (
    b"silu_and_mul(Tensor! out, Tensor input) -> ()",
    b"  weak_ref_tensor(Tensor input)\n      -> Tensor",
    b"cutlass_scaled_mm_supports_fp8(int cuda_device_capability) -> bool",
    b"topk(Tensor x, int k, *, float[2] r=[0, 1], str kind='a') -> (Tensor, Tensor(a!)?)",
    b"device->name",
    b"lookup(paths: list[str]) -> list[bool] Ask for many at once.",
)

VLLM: dict[str, str | bytes] = {
    "vllm/__init__.py": "",
    "vllm/_version.py": "__version__ = '0.32.0'\n",
    "vllm/envs.py": "RUNNER = 'v1'\n",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/llm.py": "import regex, torch\nclass LLM: ...\n",
    "vllm/configs/moe.json": "{}\n",
    "vllm/third_party/gemm/kernel.cuh": "__global__",
    "vllm/third_party/gemm/include/gemm.h": "void gemm();",
    "vllm/vllm-rs": LIBRARY,
    "vllm/_C.abi3.so": LIBRARY + b"\0" + b"\0".join(SCHEMAS) + b"\0",
    "vllm/cumem_allocator.abi3.so": LIBRARY,
    "vllm/third_party/gemm/_C.cpython-310-x86_64-linux-gnu.so": LIBRARY + b"\0a() -> int\0",
    "vllm/third_party/gemm/_C.cpython-311-x86_64-linux-gnu.so": LIBRARY + b"\0a() -> int\0",
}

REQUIREMENTS = (
    "regex",
    "torch==2.99.0",
    "torchvision==0.99.0",
    "flashinfer-python==0.7.0",
    'winloop; sys_platform == "win32"',
    'pandas; extra == "bench"',
)


def write(
    folder: Path, name: str, version: str, files: dict[str, str | bytes], *needs: str
) -> Path:
    """Its files and requirements, as a wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = name.replace("-", "_")
    about = f"{plain}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Provides-Extra: bench\nRequires-Dist: {need}\n" for need in needs)
    described: dict[str, str | bytes] = {
        f"{about}/METADATA": metadata,
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    }
    content = files | described
    content[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in content)
    wheel = folder / f"{plain}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
    return wheel


def index(folder: Path) -> Path:
    """All that the vLLM of this module needs, and optional packages."""
    write(folder, "vllm", "0.32.0", VLLM, *REQUIREMENTS)
    # uv is told of this torch by its name: the tag of any other wheel would do as well.
    write(folder, "torch", "2.13.0+cpu", {"torch.py": "cuda = None\n"})
    for name in ("regex", "triton", "quark"):
        write(folder, name, "1.0", {f"{name}.py": ""})
    for version in ("0.7.0", "0.7.1"):
        write(
            folder,
            "flashinfer-python",
            version,
            {"flashinfer.py": f"__version__ = '{version}'\n"},
            "absent",
        )
    return folder
