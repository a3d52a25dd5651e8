"""The optional packages of the image: some are pretended, and the other vendor's are hidden."""

import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from jobs.contract.emulation import Emulation
from jobs.probe.emulation import modules
from jobs.probe.emulation.modules import Finder

CUBINS = "flashinfer_cubin"
"""Flashinfer's compiled kernels, a package of files."""

EVERYWHERE = "torchvision"
"""Of vLLM's own requirements: every image has it. Some models import it, and none uses it here."""

FOREIGN = {
    "nvidia": ("aiter", "amdsmi", "mori", "quark"),
    "amd": ("cutlass", "deep_gemm", "flashinfer", CUBINS, "pynvml"),
}
"""What no image for the vendor's cards has."""


def install(emulation: Emulation, finder: Finder) -> None:
    assumed = emulation.packages.assumed
    if importlib.util.find_spec(EVERYWHERE) is None:
        assumed = (*assumed, EVERYWHERE)
    _let_transformers_see_the_truth(assumed)
    for name in assumed:
        if name == CUBINS:
            finder.answer(name, _cubins())
        else:
            finder.hollow(name)
    modules.hide([name for name in FOREIGN[emulation.card.vendor] if name not in assumed])


def _let_transformers_see_the_truth(assumed: tuple[str, ...]) -> None:
    """It would go on to use what it finds; what it has found once it keeps."""
    import_utils = importlib.import_module("transformers.utils.import_utils")
    for name in assumed:
        if ask := getattr(import_utils, f"is_{name}_available", None):
            ask()


def _cubins() -> Mapping[str, Any]:
    """Flashinfer insists on cubins of its own version."""
    version = importlib.metadata.version("flashinfer-python")
    return {"__version__": version, "get_cubin_dir": lambda: os.devnull}
