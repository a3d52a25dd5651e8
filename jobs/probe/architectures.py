"""
vLLM looks at a model's class in the process that it is in, not in another interpreter.

It would start one for each architecture, which takes longer than all the rest of a cell,
for fear that to import the class touches a device, after which no engine could be forked.
That is harmless here: what is looked at is the class alone, an engine of one process imports
it a moment later anyway, and one of several spawns its processes once a device is touched.
Hosts import only classes of models that come with the project.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Seen = TypeVar("Seen")


def inspect_here() -> None:
    """Doing it twice is the same as once."""
    # A vLLM that has it elsewhere just takes longer.
    with suppress(ImportError):
        from vllm.model_executor.models import registry

        registry._run_in_subprocess = look  # noqa: SLF001 - nothing public decides it


def look(at_the_class: Callable[[], Seen]) -> Seen:
    return at_the_class()
