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


WHY = "exists only by name on this machine"

FOREIGN = (
    ("the values of a tensor", re.compile(r"(meta|Meta) (tensor|device|kernel)|register_meta")),
    (
        "torch.cuda",
        re.compile(
            r"compiled with(out)? (CUDA|HIP)|without ATen_cuda|dummy base class|no NVIDIA driver"
        ),
    ),
    ("torch._C", re.compile(r"module 'torch\._C' has no attribute '(?P<name>\w+)'")),
    ("a library of the driver", re.compile(r"libcudart|libcuda\.so|libamdhip")),
    ("operator", re.compile(r"'_OpNamespace' '\w+' object has no attribute '(?P<name>\w+)'")),
    # What vLLM itself lacks is its own fault, or a patch's, but for its compiled modules.
    ("module", re.compile(r"^No module named '(?P<name>(?!vllm\b)[^']+|vllm[.\w]*\._\w+)'")),
    ("stub", re.compile(r"cannot import name '(?P<name>\w+)' from '[^']+' \(unknown location\)")),
)
"""What was missing where others fail for having no card, and how they say so."""


def explained(chain: Sequence[ExceptionSeen]) -> tuple[ExceptionSeen, ...]:
    """With a last link that says so, where an emulated engine failed for being emulated."""
    limits = [link for link in chain if link.type.startswith(f"{__name__}.")]
    root = chain[-1]
    return tuple(chain) if root in limits else (*chain, *(limits[-1:] or _of_foreign(root)))


def _of_foreign(root: ExceptionSeen) -> list[ExceptionSeen]:
    for what, said in FOREIGN:
        if found := said.search(root.message):
            name = found.groupdict().get("name")
            limit = EmulationLimit(f"{what} {name}" if name else what, WHY)
            kind = f"{__name__}.{EmulationLimit.__qualname__}"
            return [ExceptionSeen(type=kind, message=str(limit), where=root.where)]
    return []
