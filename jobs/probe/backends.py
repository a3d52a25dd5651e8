"""The attention backends that vLLM knows, and how to ask them without harm."""

import contextlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any


def members() -> list[Any]:
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    return list(AttentionBackendEnum)


@contextlib.contextmanager
def of_this_platform_only() -> Iterator[None]:
    """
    Let the platforms of other hardware not be imported meanwhile: some load vLLM's native
    code again, in a build for another processor, which ends the whole process.
    """
    from vllm import platforms

    found = (
        f"{platforms.__name__}.{module.name}" for module in pkgutil.iter_modules(platforms.__path__)
    )
    others = [name for name in found if name not in sys.modules]
    # How Python spells "this module can't be imported".
    sys.modules.update(dict.fromkeys(others))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in others:
            del sys.modules[name]
