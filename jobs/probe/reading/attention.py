"""Which attention backend each layer really has."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from jobs.contract.seen import AttentionGroup
from jobs.probe.reading.naming import class_path, name_of


def layers(vllm_config: Any) -> dict[str, Any]:
    """Every attention layer of target and draft, by name."""
    context = vllm_config.compilation_config.static_forward_context
    return {name: layer for name, layer in context.items() if hasattr(layer, "get_attn_backend")}


def groups(runner: Any, chosen: Mapping[str, Any]) -> tuple[AttentionGroup, ...]:
    """The layers that agree in everything but their names, together."""
    kv_groups = _kv_groups(runner)
    members: dict[AttentionGroup, list[str]] = {}
    for name, layer in chosen.items():
        members.setdefault(_group_of_one(runner, name, layer, kv_groups), []).append(name)
    return tuple(
        dataclasses.replace(group, layers=len(names), layer_names=tuple(names))
        for group, names in members.items()
    )


def backend_name(backend: Any) -> str:
    """
    The enum's member whose class this is, or that it derives from; `get_name()` is
    shared by several. Else the class's path.
    """
    members = _members()
    paths = [class_path(base) for base in backend.__mro__]
    return next((members[path] for path in paths if path in members), paths[0])


def _group_of_one(
    runner: Any, name: str, layer: Any, kv_groups: Mapping[str, tuple[int, Any]]
) -> AttentionGroup:
    index, spec = kv_groups.get(name, (None, None))
    backend = layer.get_attn_backend()
    cache = _tensor(getattr(layer, "kv_cache", None))
    prefill = getattr(layer, "prefill_backend", None)
    return AttentionGroup(
        kv_group=index,
        backend=backend_name(backend),
        class_path=class_path(backend),
        impl=class_path(layer.impl) if hasattr(layer, "impl") else None,
        layers=0,
        layer_names=(),
        attention_kind=type(spec).__name__ if spec is not None else None,
        head_size=getattr(layer, "head_size", None),
        kv_heads=getattr(layer, "num_kv_heads", None),
        block_size=getattr(spec, "block_size", None),
        kernel_block_size=_kernel_block_size(runner, name, index),
        kv_cache_dtype=name_of(getattr(layer, "kv_cache_dtype", None)),
        kv_torch_dtype=name_of(getattr(cache, "dtype", None)),
        sliding_window=_window(layer, spec),
        layouts=layouts(backend),
        mla_prefill_backend=class_path(prefill) if prefill is not None else None,
    )


def _kv_groups(runner: Any) -> dict[str, tuple[int, Any]]:
    """Layer name to the number and the spec of its KV-cache group."""
    config = getattr(runner, "kv_cache_config", None)
    return {
        name: (index, _own_spec(group.kv_cache_spec, name))
        for index, group in enumerate(config.kv_cache_groups if config else ())
        for name in group.layer_names
    }


def _own_spec(spec: Any, name: str) -> Any:
    """A group of layers with different shapes has one spec around those of its layers."""
    return getattr(spec, "kv_cache_specs", {}).get(name, spec)


def _kernel_block_size(runner: Any, name: str, index: int | None) -> int | None:
    """What the kernel sees, where the manager's blocks are split for it."""
    for group in itertools.chain.from_iterable(getattr(runner, "attn_groups", None) or ()):
        if name in group.layer_names and getattr(group, "kernel_block_size", None):
            return int(group.kernel_block_size)
    sizes = getattr(runner, "kernel_block_sizes", None) or getattr(
        runner, "_kernel_block_sizes", None
    )
    return int(sizes[index]) if sizes and index is not None and index < len(sizes) else None


def _window(layer: Any, spec: Any) -> int | None:
    window = getattr(spec, "sliding_window", None) or getattr(layer, "sliding_window", None)
    return window if isinstance(window, int) else None


def layouts(backend: Any) -> tuple[str, ...] | None:
    if hasattr(backend, "supported_kv_cache_layouts"):
        layouts = backend.supported_kv_cache_layouts()
        return tuple(layout.name for layout in layouts) if layouts is not None else None
    # Before 0.31 a backend required one layout, or none.
    required = backend.get_required_kv_cache_layout()
    return (str(required),) if required is not None else None


def _tensor(cache: Any) -> Any:
    """A layer's KV cache; older versions keep one per pipeline stage in a list."""
    first = cache[0] if isinstance(cache, (list, tuple)) and cache else cache
    return first if hasattr(first, "dtype") else None


def _members() -> dict[str, str]:
    """Class path to the name of the enum's member."""
    from vllm.v1.attention.backends import registry

    enums = [registry.AttentionBackendEnum, getattr(registry, "MambaAttentionBackendEnum", ())]
    return {_path(member): member.name for enum in enums for member in enum}


def _path(member: Any) -> str:
    try:
        return str(member.get_path())
    except ValueError:  # a place for custom backends that nobody took
        return ""
