"""The two steps of a worker's start that run kernels: memory profiling and warm-up."""

import inspect
from typing import Any

from jobs.contract.emulation import Card
from jobs.probe.emulation.ledger import Ledger


def replace(card: Card, ledger: Ledger) -> None:
    from vllm.v1.worker import gpu_worker, worker_base

    times = getattr(worker_base, "CompilationTimes", None)
    no_time = times(*[0.0] * len(inspect.signature(times).parameters)) if times else 0.0

    def determine_available_memory(worker: Any) -> int:
        configured = worker.cache_config.kv_cache_memory_bytes
        return int(configured) if configured else _left_for_the_cache(worker, card)

    ledger.replace(gpu_worker.Worker, "determine_available_memory", determine_available_memory)
    ledger.replace(gpu_worker.Worker, "compile_or_warm_up_model", lambda _: no_time)
    ledger.note("memory for the KV cache: the engine's share of the card less all parameters")


def _left_for_the_cache(worker: Any, card: Card) -> int:
    """Activations, CUDA graphs and workspaces are not in it: it is more than a real card leaves."""
    share = card.memory_bytes * worker.cache_config.gpu_memory_utilization
    return int(share) - sum(map(_parameter_bytes, _models(worker.model_runner)))


def _models(runner: Any) -> list[Any]:
    drafter = getattr(runner, "drafter", None) or getattr(runner, "speculator", None)
    models = (runner.get_model(), getattr(drafter, "model", None))
    return [model for model in models if hasattr(model, "parameters")]


def _parameter_bytes(model: Any) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
