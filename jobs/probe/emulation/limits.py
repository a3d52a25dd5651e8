"""What the emulation can't do: its own failures, told apart from vLLM's."""

import re
from collections.abc import Sequence

from jobs.contract import ExceptionSeen


class EmulationLimit(Exception):  # noqa: N818  # the project's word for it, in every record
    """Says nothing about vLLM: a real card would have gone on."""

    def __init__(self, stub: str, why: str) -> None:
        super().__init__(f"{stub}: {why}")


class EmulationLacks(EmulationLimit, AttributeError):  # noqa: N818  # as above
    """A name that a stub does not have; `hasattr` says so without an error."""


FOREIGN = (
    (re.compile(r"meta tensor|on meta tensors|'aten::_local_scalar_dense'.*Meta"), "a tensor"),
    (re.compile(r"Torch not compiled with (CUDA|ROCm|HIP)|Found no NVIDIA driver"), "torch.cuda"),
    (re.compile(r"(module '|No module named ')?torch\._C[.']|libcudart|libamdhip"), "torch._C"),
    (re.compile(r"'_OpNamespace' '_?\w+' object has no attribute '(?P<name>\w+)'"), "operator"),
    (re.compile(r"^No module named '(?P<name>[^']+)'"), "a package"),
    (re.compile(r"0 active drivers|Cannot find .*(nvcc|hipcc)|CUDA_HOME"), "a compiler"),
)
"""Errors of others that come of having no device, and what was missing."""


def explained(chain: Sequence[ExceptionSeen]) -> tuple[ExceptionSeen, ...]:
    """With a last link that says so, where an emulated engine failed for being emulated."""
    root = chain[-1]
    if _is_limit(root):
        return tuple(chain)
    limits = [link for link in chain if _is_limit(link)]
    return (*chain, *(limits[-1:] or _of_foreign(root)))


def _is_limit(link: ExceptionSeen) -> bool:
    return link.type.startswith(f"{__name__}.")


def _of_foreign(root: ExceptionSeen) -> list[ExceptionSeen]:
    for pattern, what in FOREIGN:
        if found := pattern.search(root.message):
            name = found.groupdict().get("name")
            return [
                ExceptionSeen(
                    type=f"{__name__}.{EmulationLimit.__qualname__}",
                    message=f"{f'{what} {name}' if name else what}: {_WHY}",
                    where=root.where,
                )
            ]
    return []


_WHY = "exists only by name on this machine"
