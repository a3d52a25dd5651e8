"""What uv is asked for a build's environment: requirements, and what counts instead of others."""

import importlib.metadata
import re
from collections.abc import Iterable
from pathlib import Path

from jobs.contract.builds import BuildSpec
from jobs.contract.terms import EngineMode
from jobs.node.builds import wheels

TORCH = "torch==2.13.0"
"""What emulated engines have, whatever their vLLM asks for: tensors without storage are the
same in each, and one CPU build serves every release."""

TRITON = "triton"
"""Torch's builds for GPUs bring it, its CPU build does not; vLLM asks whether it is there."""

NOT_EMULATED = (
    # These have to match torch exactly, and only pictures and sound need them.
    "torchaudio",
    "torchcodec",
    "torchvision",
    # These hold or generate kernels. What vLLM asks of them belongs in a package set.
    "fastsafetensors",
    "flashinfer-cubin",
    "flashinfer-python",
    "humming-kernels",
    "instanttensor",
    "nvidia-cudnn-frontend",
    "nvidia-cutlass-dsl",
    "nvtx",
    "pynvvideocodec",
    "quack-kernels",
    "tilelang",
    "tokenspeed-mla",
)
"""Requirements of vLLM's wheel for GPUs that its Python half starts without."""


def vllm(spec: BuildSpec) -> tuple[str, str]:
    """The requirement or the wheel that brings vLLM, and what to call it."""
    if spec.wheel is not None:
        wheel = wheels.find(spec.wheel)
        return str(wheel), wheel.name
    return f"{spec.distribution}=={spec.release}", f"{spec.distribution} {spec.release}"


def needed(spec: BuildSpec, metadata: Path) -> list[str]:
    """By a vLLM that is laid down by itself; *metadata* is its `.dist-info`."""
    own = importlib.metadata.Distribution.at(metadata).requires or []
    # uv leaves out those of vLLM's extras, since none is asked for.
    return [*own, TRITON, *spec.extra_requirements]


def overrides(spec: BuildSpec) -> list[str]:
    """Lines for uv's `--override`."""
    if spec.engine_mode is EngineMode.REAL:
        return [*_nowhere(spec.exclude), *spec.overrides]
    wanted = {_name(line) for line in (*spec.overrides, *spec.extra_requirements)}
    torch = [] if "torch" in wanted else [TORCH]
    left_out = {*map(_name, spec.exclude), *NOT_EMULATED} - wanted
    return [*_nowhere(sorted(left_out)), *torch, *spec.overrides]


def torch_backend(spec: BuildSpec) -> str:
    return spec.torch_backend if spec.engine_mode is EngineMode.REAL else "cpu"


def _nowhere(names: Iterable[str]) -> list[str]:
    """A requirement that holds nowhere, in place of the one that others have for the package."""
    return [f"{name} ; sys_platform == 'never'" for name in names]


def _name(requirement: str) -> str:
    """As package indexes compare it."""
    name = re.match(r"\s*[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0].strip()).lower() if name else ""
