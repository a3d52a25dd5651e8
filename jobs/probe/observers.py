"""Which of vLLM's methods begin a phase; the only place that wraps them, and only to look."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jobs.contract.terms import Phase
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

OF_THE_RUNNER = {"capture_model": Phase.CAPTURE}
"""A method of the model runner, which the worker calls while it warms up, unless it is eager."""

PASSED = (
    BEGINS
    | OF_THE_RUNNER
    | {"_initialize_kv_caches": Phase.KV_CACHE, "execute_model": Phase.GENERATE}
)
"""And those that tell where an error of another process came from."""

ENDS = {
    # Outside of the workers: blocks are counted, layouts agreed on.
    "determine_available_memory": Phase.KV_CACHE,
    # More is warmed up after the graphs.
    "capture_model": Phase.COMPILE,
}
"""What begins where such a method ends, if that is not where the next one begins."""


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
        bound = functools.partial(original, wrapper) if original else getattr(wrapper.worker, name)
        if name == "compile_or_warm_up_model":
            _observe_runner(wrapper.worker)
        return _in_phase(bound, name)(*args, **kwargs)

    return method


def _observe_runner(worker: Any) -> None:
    """Not before: runners of some versions capture graphs to measure them, while they profile."""
    runner = getattr(worker, "model_runner", None)
    for name in OF_THE_RUNNER:
        if hasattr(runner, name):
            setattr(runner, name, _in_phase(getattr(runner, name), name))


def _in_phase(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def told(*args: Any, **kwargs: Any) -> Any:
        phases.enter(environment.folder(), PASSED[name])
        result = function(*args, **kwargs)
        if name in ENDS:
            phases.enter(environment.folder(), ENDS[name])
        return result

    return told
