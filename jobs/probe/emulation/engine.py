"""What of vLLM is replaced outside of its workers: it needs the card, or is a waste without."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from jobs.probe import architectures
from jobs.probe.emulation.ledger import Ledger

BLOCKS = 1024
"""Of the KV cache, as objects: no request is ever scheduled, and a card may have a million."""

NVLINK = "has_flashinfer_nvlink_one_sided"
"""A way between ranks of experts, by name only on emulated cards."""


def replace(ledger: Ledger) -> None:
    from vllm.model_executor.layers.fused_moe import expert_map_manager
    from vllm.model_executor.models import registry
    from vllm.platforms import current_platform
    from vllm.utils import flashinfer
    from vllm.v1.core.block_pool import BlockPool

    # Also because a new interpreter would not have the card.
    ledger.replace(registry, "_run_in_subprocess", architectures.look)
    platform = type(current_platform)
    # In place of NCCL and RCCL.
    ledger.replace(platform, "dist_backend", "gloo")
    # Workers set it in threads too, where tensors do not go to meta: see there.
    ledger.replace(platform, "set_device", classmethod(_do_nothing))
    located = _with_values(expert_map_manager.determine_expert_map)
    ledger.replace(expert_map_manager, "determine_expert_map", located)
    # To import what answers would need the driver. An engine has to ask for it to get it.
    if hasattr(flashinfer, NVLINK):
        ledger.replace(flashinfer, NVLINK, lambda: False)
    ledger.replace(BlockPool, "__init__", _of_few_blocks(BlockPool.__init__))


def _do_nothing(*_: Any) -> None: ...


def _with_values(locate: Callable[..., Any]) -> Callable[..., Any]:
    """Which experts a rank has: vLLM reads it while it builds a layer, and meta can't say."""

    @functools.wraps(locate)
    def on_the_host(*args: Any, **kwargs: Any) -> Any:
        from torch import device

        with device("cpu"):
            return locate(*args, **kwargs)

    return on_the_host


def _of_few_blocks(construct: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(construct)

    @functools.wraps(construct)
    def with_few(*args: Any, **kwargs: Any) -> None:
        asked = signature.bind(*args, **kwargs)
        asked.arguments["num_gpu_blocks"] = min(asked.arguments["num_gpu_blocks"], BLOCKS)
        construct(*asked.args, **asked.kwargs)

    return with_few
