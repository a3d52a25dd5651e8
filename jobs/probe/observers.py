"""Which of vLLM's methods begin a phase; the only place that wraps them, and only to look."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jobs.contract import Phase
from jobs.probe import environment, phases, selections

BEGINS = {
    "init_device": Phase.INIT_DEVICE,
    "load_model": Phase.LOAD,
    "get_kv_cache_spec": Phase.KV_CACHE,
    "determine_available_memory": Phase.PROFILE,
    "initialize_from_config": Phase.KV_CACHE,
    "compile_or_warm_up_model": Phase.COMPILE,
}
"""A worker's methods, in the order in which an engine calls them."""

PASSED = BEGINS | {"_initialize_kv_caches": Phase.KV_CACHE, "execute_model": Phase.GENERATE}
"""And those that tell where an error of another process came from."""

ENDS = {"determine_available_memory": Phase.KV_CACHE}
"""Where the next phase begins outside of the workers: blocks are counted, layouts agreed on."""


@dataclass(slots=True)
class Observed:
    worker: Any = None
    """The one that was started last."""


HERE = Observed()
"""Of this process: an engine that fails takes its worker with it, and tells nobody."""


def install() -> None:
    """Observe this process, which holds a worker or will. Doing it twice is the same as once."""
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    selections.observe()
    if not hasattr(WorkerWrapperBase, "observed_by_probe"):
        WorkerWrapperBase.observed_by_probe = True
        for name in BEGINS:
            setattr(WorkerWrapperBase, name, _observed(WorkerWrapperBase.__dict__.get(name), name))


def phase_of(functions: Iterable[str]) -> Phase | None:
    """The phase of an error that passed through *functions*, the outermost first."""
    entered = [PASSED[name] for name in functions if name in PASSED]
    return entered[-1] if entered else None


def _observed(original: Callable[..., Any] | None, name: str) -> Callable[..., Any]:
    """A method of the wrapper around a worker; what it does not define it hands through."""

    @functools.wraps(original or _observed)
    def method(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
        HERE.worker = wrapper.worker
        phases.enter(environment.folder(), BEGINS[name])
        bound = functools.partial(original, wrapper) if original else getattr(wrapper.worker, name)
        result = bound(*args, **kwargs)
        if name in ENDS:
            phases.enter(environment.folder(), ENDS[name])
        return result

    return method
