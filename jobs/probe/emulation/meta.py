"""Tensors of the card: on torch's `meta` device, which has shapes and no storage."""

from collections.abc import Callable
from typing import Any

from jobs.probe.emulation.ledger import Ledger


def enter(ledger: Ledger) -> None:
    """For good, in this thread and its forks: what is made on the card goes to meta."""
    from torch.overrides import TorchFunctionMode

    class CardToMeta(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
        def __torch_function__(
            self,
            func: Callable[..., Any],
            types: Any,  # of the interface
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            return _redirected(func, args, dict(kwargs or {}))

    CardToMeta().__enter__()
    ledger.replaced.append("torch: tensors made on the card or moved to it are on meta")


def _redirected(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch import Tensor

    if _is_card(kwargs.get("device")):
        kwargs["device"] = "meta"
    # Pinning is for copies to a device, and needs its driver.
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    if func is Tensor.pin_memory:
        return args[0]
    if func is Tensor.cuda:
        return args[0].to("meta")
    if func is Tensor.to and len(args) > 1 and _is_card(args[1]):
        args = (args[0], "meta", *args[2:])
    return func(*args, **kwargs)


def _is_card(where: Any) -> bool:
    from torch import device

    if isinstance(where, str):
        return where.split(":")[0] == "cuda"
    return isinstance(where, device) and where.type == "cuda"
