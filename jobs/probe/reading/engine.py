"""What holds for the whole engine."""

from collections import Counter
from typing import Any

from jobs.contract.seen import Engine
from jobs.probe.reading import moe
from jobs.probe.reading.naming import class_path, follow, name_of
from jobs.probe.reading.owners import Owners

RUNNERS = {"vllm.v1.worker.gpu.model_runner": "V2", "vllm.v1.worker.gpu_model_runner": "V1"}
"""Where the two are defined; a platform's runner derives from one of them."""


def read(worker: Any, owners: Owners) -> Engine:
    runner, config = worker.model_runner, worker.vllm_config
    return Engine(
        runner=_runner(runner),
        runner_class=class_path(runner),
        kv_layout=_kv_layout(runner, config),
        kv_blocks=follow(runner, "kv_cache_config.num_blocks"),
        attention_backend=name_of(follow(config, "attention_config.backend")),
        dtype=name_of(follow(config, "model_config.dtype")),
        quantization=name_of(follow(config, "model_config.quantization")),
        cudagraph_mode=name_of(_cudagraph_mode(runner, config)),
        compilation_mode=name_of(follow(config, "compilation_config.mode")),
        tensor_parallel=config.parallel_config.tensor_parallel_size,
        pipeline_parallel=config.parallel_config.pipeline_parallel_size,
        data_parallel=config.parallel_config.data_parallel_size,
        expert_parallel=config.parallel_config.enable_expert_parallel,
        speculative_method=follow(config, "speculative_config.method"),
        target_class=_class(owners.target_model),
        draft_class=_class(owners.draft_model),
        linear_methods=_linear_methods(owners),
    )


def _runner(runner: Any) -> str | None:
    modules = [base.__module__ for base in type(runner).__mro__]
    return next((RUNNERS[module] for module in modules if module in RUNNERS), None)


def _kv_layout(runner: Any, config: Any) -> str | None:
    return name_of(
        follow(runner, "kv_cache_config.kv_cache_layout")
        or follow(config, "cache_config.kv_cache_layout")
    )


def _cudagraph_mode(runner: Any, config: Any) -> Any:
    """What the runner uses, which can be less than what is configured."""
    used = (
        follow(runner, "cudagraph_manager.cudagraph_mode"),
        follow(runner, "cudagraph_dispatcher.cudagraph_mode"),
        follow(config, "compilation_config.cudagraph_mode"),
    )
    return next((mode for mode in used if mode is not None), None)


def _class(model: Any) -> str | None:
    return class_path(model) if model is not None else None


def _linear_methods(owners: Owners) -> dict[str, int]:
    """How many layers of target and draft each quantization method serves."""
    methods = [
        (getattr(module, "quant_method", None), getattr(module, "scheme", None))
        for model in (owners.target_model, owners.draft_model)
        if model is not None
        for module in model.modules()
    ]
    return dict(
        Counter(
            type(method).__name__
            if scheme is None
            else f"{type(method).__name__}[{type(scheme).__name__}]"
            for method, scheme in methods
            if method is not None and not moe.is_moe(method)
        )
    )
