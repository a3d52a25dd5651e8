"""
vLLM's compiled operators: their schemas are there, their kernels are not.

Code can ask whether an operator exists; a few operators are questions about the card
and get an answer; every other one raises when it is called.
"""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jobs.contract.emulation import Card, Emulation
from jobs.probe.emulation import modules
from jobs.probe.emulation.ledger import Ledger
from jobs.probe.emulation.limits import EmulationLimit
from jobs.probe.emulation.modules import Finder

MAIN = ("_C", "_C_cache_ops", "_C_custom_ar", "_C_cuda_utils")

NAMESPACES = {
    "_C": MAIN,
    "_C_stable_libtorch": MAIN,
    "_moe_C": ("_moe_C",),
    "_moe_C_stable_libtorch": ("_moe_C",),
}
"""
Where an extension's operators are, when not below its own name. A wheel's strings do not
tell which of the four namespaces an operator is in, so it is in all of them.
"""

FOR_EVERYBODY = frozenset(NAMESPACES)
"""Extensions that ROCm's wheel has too. It is on no index; NVIDIA's stands in for it."""

ALLOCATOR = "vllm.cumem_allocator"
"""For engines that sleep. It has functions in place of operators; not every platform has it."""

ROCM = "vllm._rocm_C"
DEEP_GEMM = "vllm.third_party.deep_gemm"
"""A package around an extension whose file it looks for: all of it is hollow."""


def install(emulation: Emulation, finder: Finder, ledger: Ledger) -> None:
    schemas: dict[str, list[str]] = json.loads(Path(emulation.operators).read_text())
    card = emulation.card
    modules.hide([ALLOCATOR])
    for module, declared in sorted(schemas.items()):
        if module == ALLOCATOR or module.startswith(f"{DEEP_GEMM}."):
            continue
        if card.vendor == "nvidia" or _short(module) in FOR_EVERYBODY:
            finder.answer(module, {})
            _register(module, declared, card, ledger)
    if card.vendor == "amd":
        finder.answer(ROCM, {})
        ledger.note("operators: those of the CUDA wheel; ROCm's own are on no package index")
    elif any(module.startswith(f"{DEEP_GEMM}.") for module in schemas):
        finder.hollow(DEEP_GEMM)


def _register(module: str, schemas: Sequence[str], card: Card, ledger: Ledger) -> None:
    answers = _answers(card)
    names = {schema.split("(")[0] for schema in schemas}
    for namespace in NAMESPACES.get(_short(module), (_short(module),)):
        _define(namespace, schemas, answers, ledger)
    ledger.replaced.extend(f"{module}: operator {name}" for name in sorted(names & set(answers)))
    if names:
        ledger.note(f"{module}: {len(names)} operators exist by name")


def _define(
    namespace: str,
    schemas: Sequence[str],
    answers: Mapping[str, Callable[..., Any]],
    ledger: Ledger,
) -> None:
    import torch

    library = torch.library.Library(namespace, "FRAGMENT")
    ledger.keep(library)  # its operators go when it does
    for schema in schemas:
        name = schema.split("(")[0]
        if "." not in name and hasattr(getattr(torch.ops, namespace), name):
            continue
        # Not every string of a wheel that looks like a schema is one.
        with contextlib.suppress(RuntimeError):
            library.define(schema)
            implementation = answers.get(name) or _refusal(f"torch.ops.{namespace}.{name}", ledger)
            library.impl(name, implementation, "CompositeExplicitAutograd")


def _answers(card: Card) -> Mapping[str, Callable[..., Any]]:
    """Operators that ask about the card, by name; what they say is in vLLM's native code."""
    import torch

    def seen_by_the_card(tensor: Any) -> Any:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")

    return {
        "cutlass_scaled_mm_supports_fp8": lambda capability: capability >= 89,
        "cutlass_scaled_mm_supports_block_fp8": lambda capability: capability >= 90,
        "cutlass_scaled_mm_supports_fp4": lambda capability: capability >= 100,
        "cutlass_group_gemm_supported": lambda capability: 90 <= capability < 110,
        "cutlass_sparse_scaled_mm_supported": lambda capability: 90 <= capability < 100,
        "get_max_shared_memory_per_block_device_attribute": lambda _: card.shared_memory_bytes,
        "get_device_attribute": lambda *_: 0,
        "get_cuda_view_from_cpu_tensor": seen_by_the_card,
    }


def _refusal(name: str, ledger: Ledger) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        # Whoever called it may catch the error, and go on in another way than a real card would.
        ledger.note(f"{name} was called")
        raise EmulationLimit(name, "has no kernel here")

    return refuse


def _short(module: str) -> str:
    return module.rsplit(".", 1)[-1]
