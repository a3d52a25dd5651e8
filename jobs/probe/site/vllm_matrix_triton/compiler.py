"""The compiler: none."""

from typing import Any, NoReturn

from triton.backends.compiler import BaseBackend, GPUTarget


class InterpreterBackend(BaseBackend):  # type: ignore[misc]  # Triton has no types here
    binary_ext = "none"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "cpu")

    def hash(self) -> str:
        return "vllm_matrix_triton"

    def parse_options(self, options: dict[str, Any]) -> dict[str, Any]:
        return dict(options)

    def add_stages(self, stages: Any, options: Any, language: Any) -> NoReturn:  # noqa: ARG002
        raise RuntimeError("nothing can be compiled here: set TRITON_INTERPRET=1")

    def load_dialects(self, context: Any) -> None:
        """There are none."""

    def get_module_map(self) -> dict[str, Any]:
        return {}
