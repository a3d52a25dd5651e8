"""
What a cell would import anyway, imported once.

No module of this list touches a device, and none is required: a version or a
build of vLLM that lacks one just leaves a little more to its cells.
"""

import contextlib
import importlib
import json
from collections.abc import Iterator

from jobs.probe import backends
from jobs.probe.shipped import MODELS

MODULES = (
    "vllm.v1.engine.llm_engine",
    "vllm.v1.engine.core",
    "vllm.v1.engine.core_client",
    "vllm.v1.engine.output_processor",
    "vllm.v1.core.sched.async_scheduler",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.lora.resolver",
    "vllm.plugins.lora_resolvers.filesystem_resolver",
    "vllm.plugins.lora_resolvers.hf_hub_resolver",
    "vllm.distributed.elastic_ep.elastic_execute",
    "vllm.v1.executor.uniproc_executor",
    "vllm.v1.executor.multiproc_executor",
    "vllm.v1.worker.gpu_worker",
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.v1.spec_decode.eagle",
    "vllm.v1.spec_decode.draft_model",
    "vllm.v1.spec_decode.medusa",
    "vllm.v1.worker.gpu.spec_decode.eagle",
    "vllm.model_executor.model_loader.default_loader",
    "vllm.model_executor.model_loader.dummy_loader",
    "vllm.renderers.registry",
    "vllm.renderers.hf",
    "transformers.models.llama.configuration_llama",
)

OF_ONE_PLATFORM = {
    "cpu": (
        "vllm.v1.worker.cpu_worker",
        "vllm.v1.worker.cpu_model_runner",
        "vllm.v1.worker.cpu.model_runner",
    ),
    "cuda": (
        "vllm.v1.worker.gpu.spec_decode",
        "vllm.v1.worker.gpu.model_states.default",
        "vllm.compilation.backends",
        "vllm.model_executor.layers.quantization.online.base",
    ),
}
"""By vLLM's name for the kind of device. A module for CPUs replaces functions of torch when
it is imported, which a process that has a GPU must be spared."""

DRAFT_ARCHITECTURES = (
    "EagleLlamaForCausalLM",
    "Eagle3LlamaForCausalLM",
    "DeepSeekMTPModel",
    "Glm4MoeMTPModel",
    "ErnieMTPModel",
)
"""What vLLM makes of a draft's architecture, or of a target's with method `mtp`."""


def import_everything() -> None:
    import vllm
    from vllm.platforms import current_platform

    assert vllm.LLM, "the package imports its members when they are asked for"
    with backends.of_this_platform_only():
        for module in (*MODULES, *OF_ONE_PLATFORM.get(current_platform.device_type, ())):
            with _tolerance():
                importlib.import_module(module)
        for prepare in (_configure_logging, _load_plugins, _find_compilers, _import_quantizations):
            with _tolerance():
                prepare()
        for architecture in (*_shipped_architectures(), *DRAFT_ARCHITECTURES):
            with _tolerance():
                vllm.ModelRegistry.models[architecture].load_model_cls()
        for member in backends.members():
            with _tolerance():
                member.get_class()
        # The last: it goes through all modules that are there.
        with _tolerance():
            _override_kernels()


def _tolerance() -> contextlib.suppress:
    # A module for other hardware may fail to import in any way that code can fail.
    return contextlib.suppress(Exception)


def _configure_logging() -> None:
    """Engines do it as long as nobody has: it goes through all loggers, of which there are many."""
    from vllm.config.logging import LoggingConfig
    from vllm.logger import configure_logging_if_needed

    configure_logging_if_needed(LoggingConfig())


def _load_plugins() -> None:
    """vLLM looks for them in every installed package, once in a process."""
    from vllm.plugins import load_general_plugins

    load_general_plugins()


def _find_compilers() -> None:
    """So does torch, for the back ends of its compiler."""
    import torch

    torch.compiler.list_backends()


def _import_quantizations() -> None:
    """To ask for one of them is to import them all."""
    from vllm.model_executor.layers.quantization import get_quantization_config

    get_quantization_config("fp8")


def _override_kernels() -> None:
    """
    A worker does it when it is made, and goes through every name of every module for it.
    Modules that are imported later take the kernels that are then in place, as they would.
    """
    from vllm.platforms import current_platform

    platform = type(current_platform)
    platform.register_triton_kernel_overrides()
    platform.register_triton_kernel_overrides = staticmethod(_already_done)


def _already_done() -> None:
    """Once more would wrap what is wrapped."""


def _shipped_architectures() -> Iterator[str]:
    for config in sorted(MODELS.glob("*/config.json")):
        yield from json.loads(config.read_text())["architectures"]
