"""
Which layers belong to the target and which to the draft.

Four signals say so, none of them in every version and for every method: the modules of
the draft's model, a mark on the layer, the drafter's own list of names, and what was
added when the draft was loaded, which only our own loader notes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LISTS = ("draft_attn_layer_names", "_draft_attn_layer_names", "attn_layer_names")
"""Of V2's speculators, V1's proposers, and V1's extraction of hidden states."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owners:
    target_model: Any
    draft_model: Any
    listed: frozenset[str] | None
    """Layers that the drafter calls its own; None: it keeps no list."""

    loaded: frozenset[str] | None
    """Layers that came with the draft's model; None: nobody noted it."""

    target_ids: frozenset[int]
    draft_ids: frozenset[int]

    @classmethod
    def of(cls, runner: Any, *, loaded: frozenset[str] | None = None) -> "Owners":
        drafter = getattr(runner, "drafter", None) or getattr(runner, "speculator", None)
        lists = [getattr(drafter, name) for name in LISTS if getattr(drafter, name, None)]
        target_model = _module(_target_model(runner))
        draft_model = _module(getattr(drafter, "model", None))
        return cls(
            target_model=target_model,
            draft_model=draft_model,
            listed=frozenset(lists[0]) if lists else None,
            loaded=loaded,
            target_ids=_ids(target_model),
            draft_ids=_ids(draft_model),
        )

    def split(self, layers: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Target's and draft's. A layer that any signal gives to the draft is the draft's."""
        draft = {
            name: layer
            for name, layer in layers.items()
            if any(self._signals(name, layer).values())
        }
        return {name: layer for name, layer in layers.items() if name not in draft}, draft

    def contradictions(self, layers: Mapping[str, Any]) -> tuple[str, ...]:
        signals = {name: self._signals(name, layer) for name, layer in layers.items()}
        return tuple(
            f"whether {name} is the draft's: {', '.join(f'{k} says {v}' for k, v in said.items())}"
            for name, said in signals.items()
            if len(set(said.values())) > 1
        )

    def _signals(self, name: str, layer: Any) -> dict[str, bool]:
        """Whether the layer is the draft's, by each signal that has an opinion."""
        signals: dict[str, bool] = {}
        if id(layer) in self.draft_ids | self.target_ids:
            signals["the module tree"] = id(layer) in self.draft_ids
        if self.listed is not None:
            signals["the drafter's list"] = name in self.listed
        if self.loaded is not None:
            signals["the loader"] = name in self.loaded
        if getattr(layer, "is_draft_layer", False):
            signals["the layer"] = True
        return signals


def _target_model(runner: Any) -> Any:
    """None until it is loaded."""
    try:
        return runner.get_model()
    except AttributeError:
        return None


def _module(model: Any) -> Any:
    """What is inside of the wrappers for graphs and micro-batches."""
    while model is not None and not hasattr(model, "named_modules"):
        model = model.unwrap() if hasattr(model, "unwrap") else getattr(model, "runnable", None)
    return model


def _ids(model: Any) -> frozenset[int]:
    return frozenset(map(id, model.modules())) if model is not None else frozenset()
