"""The device: the CPU, whenever the interpreter runs the kernels."""

import os
import time
from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase


class InterpreterDriver(DriverBase):  # type: ignore[misc]  # Triton has no types here
    @classmethod
    def is_active(cls) -> bool:
        return os.environ.get("TRITON_INTERPRET") == "1"

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", 0, 1)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:  # noqa: ARG002  # Triton passes it
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one only."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return _once


def _once(kernel: Callable[[], Any], *, quantiles: list[float], **_: Any) -> list[float]:
    """Milliseconds; the interpreter has no warm-up that would matter."""
    start = time.perf_counter()
    kernel()
    return [(time.perf_counter() - start) * 1000] * len(quantiles)
