"""A model loader, through vLLM's own door for them: it constructs models and loads no weights."""

from dataclasses import dataclass, field
from typing import Any

from jobs.probe.emulation.ledger import Ledger

FORMAT = "matrix_emulated"
"""The engine argument `load_format` that chooses it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """One call for a model, and the layers that it added, also when it then failed."""

    model_config: Any
    layer_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Calls:
    seen: list[Built] = field(default_factory=list)


HERE = Calls()
"""Of this process: vLLM makes loaders by itself, and forgets them."""


def layers_of_drafts(target: Any) -> frozenset[str] | None:
    """Of all models but *target*'s, by its configuration; None where another loader loads."""
    if not HERE.seen:
        return None
    drafts = [call for call in HERE.seen if call.model_config is not target]
    return frozenset(name for call in drafts for name in call.layer_names)


def register(ledger: Ledger) -> None:
    import torch
    from vllm.model_executor.model_loader import register_model_loader
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype

    @register_model_loader(FORMAT)
    class ConstructOnly(BaseModelLoader):  # type: ignore[misc]
        def download_model(self, model_config: Any) -> None: ...

        def load_weights(self, model: Any, model_config: Any) -> None: ...

        def load_model(self, vllm_config: Any, model_config: Any, prefix: str = "") -> Any:
            context = vllm_config.compilation_config.static_forward_context
            before = set(context)
            create = getattr(self, "create_model", initialize_model)
            try:
                with set_default_torch_dtype(model_config.dtype), torch.device("meta"):
                    return create(
                        vllm_config=vllm_config, model_config=model_config, prefix=prefix
                    ).eval()
            finally:
                added = tuple(name for name in context if name not in before)
                HERE.seen.append(Built(model_config=model_config, layer_names=added))

    ledger.note(f"load_format={FORMAT}: models are constructed, no weight is loaded")
