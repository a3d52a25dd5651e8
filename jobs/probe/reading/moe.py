"""Which MoE backend each mixture of experts really has."""

import dataclasses
from collections import Counter
from typing import Any

from jobs.contract.seen import MoeGroup
from jobs.probe.reading.naming import class_path, follow, name_of


def groups(model: Any) -> tuple[MoeGroup, ...]:
    """The expert layers that agree, together, each with their number."""
    if model is None:
        return ()
    layers = [module for module in model.modules() if is_moe(getattr(module, "quant_method", None))]
    counted = Counter(_group_of_one(layer) for layer in layers)
    return tuple(dataclasses.replace(group, layers=count) for group, count in counted.items())


def is_moe(method: Any) -> bool:
    return any(base.__name__ == "FusedMoEMethodBase" for base in type(method).__mro__)


def _group_of_one(layer: Any) -> MoeGroup:
    method = layer.quant_method
    # A layer that runs a modular kernel keeps the method that chose the backend inside.
    chooser = getattr(method, "old_quant_method", None) or method
    experts = follow(method, "moe_kernel.impl.fused_experts") or follow(chooser, "experts_cls")
    return MoeGroup(
        backend=_backend(chooser),
        experts_class=class_path(experts) if experts is not None else None,
        quant_method=type(chooser).__name__,
        layers=0,
        local_experts=_local_experts(layer),
    )


def _local_experts(layer: Any) -> int | None:
    found = (follow(layer, path) for path in ("local_num_experts", "moe_config.num_local_experts"))
    return next((count for count in found if isinstance(count, int)), None)


def _backend(method: Any) -> str | None:
    """The oracle's answer; each quantization has an attribute and an enum of its own."""
    answers = [
        name_of(value)
        for name, value in vars(method).items()
        if name.endswith("backend") and value is not None and not isinstance(value, type)
    ]
    return answers[0] if answers else None
