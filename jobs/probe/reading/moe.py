"""Which MoE backend each mixture of experts really has."""

from collections import Counter
from typing import Any

from jobs.contract.seen import MoeGroup
from jobs.probe.reading.naming import class_path, follow, name_of


def groups(model: Any) -> tuple[MoeGroup, ...]:
    """The expert layers that agree, together, each with their number."""
    if model is None:
        return ()
    methods = [getattr(module, "quant_method", None) for module in model.modules()]
    counted = Counter(_facts(method) for method in methods if is_moe(method))
    return tuple(
        MoeGroup(backend=backend, experts_class=experts, quant_method=method, layers=layers)
        for (backend, experts, method), layers in counted.items()
    )


def is_moe(method: Any) -> bool:
    return any(base.__name__ == "FusedMoEMethodBase" for base in type(method).__mro__)


def _facts(method: Any) -> tuple[str | None, str | None, str]:
    # A layer that runs a modular kernel keeps the method that chose the backend inside.
    chooser = getattr(method, "old_quant_method", None) or method
    experts = follow(method, "moe_kernel.impl.fused_experts") or follow(chooser, "experts_cls")
    return (
        _backend(chooser),
        class_path(experts) if experts is not None else None,
        type(chooser).__name__,
    )


def _backend(method: Any) -> str | None:
    """The oracle's answer; each quantization has an attribute and an enum of its own."""
    answers = [
        name_of(value)
        for name, value in vars(method).items()
        if name.endswith("backend") and value is not None and not isinstance(value, type)
    ]
    return answers[0] if answers else None
