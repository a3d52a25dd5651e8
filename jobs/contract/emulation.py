"""What an emulated engine has to pretend, and what was pretended."""

from dataclasses import dataclass
from typing import Any, ClassVar

from jobs.contract.terms import STRICT


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """An accelerator as vLLM can ask about it: all that an emulated one consists of."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    """As conf/hardware has it: h100, mi300x."""

    vendor: str
    product: str
    """As the driver reports it: NVIDIA H100 80GB HBM3."""

    arch: str
    """sm_90, gfx942."""

    memory_bytes: int
    compute_units: int
    """Streaming multiprocessors, or AMD's compute units."""

    shared_memory_bytes: int
    """Per block at most (opt-in); on AMD the local data share of a work group."""

    pci_device: str | None = None
    """PCI device id, such as 0x74a1, by which vLLM knows AMD's cards."""

    devices: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageSet:
    """The optional packages beside vLLM, which decide what its selectors find."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    """Of the image that it is modelled on: vllm-openai, vllm-rocm."""

    installed: tuple[str, ...] = ()
    """Requirements that are really installed, without their own dependencies."""

    assumed: tuple[str, ...] = ()
    """Modules that the image has and that are only pretended here: flashinfer_cubin, aiter."""

    source: str | None = None
    """Where that image is described."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Emulation:
    """What a host has to pretend, from before `import vllm` on."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    card: Card
    packages: PackageSet
    operators: str
    """A JSON file: extension module (`vllm._C`) to the schemas of its operators."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Emulated:
    """What was not real in a cell. It is in every report of an emulated one."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    card: Card
    packages: PackageSet
    stubs: tuple[str, ...]
    """Modules and operators that exist only by name."""

    replaced: tuple[str, ...]
    """Functions of vLLM, torch and others that answer from the card's description."""

    notes: tuple[str, ...] = ()


EMULATION_VARIABLE = "MATRIX_EMULATION"
"""In a host's environment: what it has to pretend, an `Emulation` as JSON. Not set: nothing."""

PARALLEL_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
"""Engine arguments of which any but 1 needs several devices, and processes."""
