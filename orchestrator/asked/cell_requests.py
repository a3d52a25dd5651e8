"""What a cell asks, in vLLM's own terms: keyword arguments of `vllm.LLM` and environment."""

import dataclasses
from typing import Any

from jobs.contract.asked import CellRequest, ProbeRequest, Workload
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.emulation import Card
from jobs.contract.terms import EngineMode
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, FieldName

RUNNER_VARIABLE = "VLLM_USE_V2_MODEL_RUNNER"


def cell_request(
    cell: Cell, build: ProvisionedBuild, *, attempt: int, workdir: str, cache: str
) -> CellRequest:
    return CellRequest(
        probe=ProbeRequest(
            cell_id=cell.id,
            attempt=attempt,
            check=cell.check,
            engine_mode=cell.engine_mode,
            engine_args=engine_args(cell),
            sources=tuple(build.sources),
            card=card(cell) if cell.engine_mode is EngineMode.EMULATED else None,
            workload=workload(cell),
        ),
        build=build,
        env=environment(cell),
        isolation=cell.isolation,
        deadlines=cell.deadlines,
        secrets=cell.secrets,
        workdir=workdir,
        cache=cache,
    )


def workload(cell: Cell) -> Workload | None:
    speed = cell.speed
    if speed is None:
        return None
    return Workload(
        samples=speed.samples,
        prompts=speed.prompts,
        prompt_tokens=speed.prompt_tokens,
        output_tokens=speed.output_tokens,
        seed=speed.seed,
    )


def asked(cell: Cell) -> dict[FieldName, str | None]:
    """What the cell asks for, field by field; None asks nothing."""
    backend = cell.backend
    fields: dict[FieldName, str | None] = {
        "target.attention_backend": backend.target.attention_backend,
        "target.kv_cache_dtype": backend.target.kv_cache_dtype,
    }
    if cell.model.moe:
        fields["target.moe_backend"] = backend.target.moe_backend
    if cell.model.speculative is not None:
        fields["draft.attention_backend"] = backend.draft.attention_backend
        fields["draft.kv_cache_dtype"] = backend.draft.kv_cache_dtype
        if cell.model.moe:
            fields["draft.moe_backend"] = backend.draft.moe_backend
    fields["runner"] = backend.runner
    fields["block_size"] = None if backend.block_size is None else str(backend.block_size)
    return fields


def engine_args(cell: Cell) -> dict[str, Any]:
    model, backend = cell.model, cell.backend
    args = {"model": model.path, **model.engine_args, **backend.engine_args}
    args |= _present(backend.target)
    if model.dtype is not None:
        args["dtype"] = model.dtype
    if model.devices > 1:
        args.setdefault("tensor_parallel_size", model.devices)
    if backend.block_size is not None:
        args["block_size"] = backend.block_size
    if model.speculative is not None:
        args["speculative_config"] = {**model.speculative, **_present(backend.draft)}
    return args


def environment(cell: Cell) -> dict[str, str]:
    env = {**cell.model.env, **cell.backend.env}
    if cell.backend.runner is not None:
        env[RUNNER_VARIABLE] = "1" if cell.backend.runner == "V2" else "0"
    return env


def card(cell: Cell) -> Card:
    """
    The cell's hardware as an emulated engine sees it, on each of its nodes; `checking` saw that
    nothing is missing.
    """
    described = dataclasses.asdict(cell.hardware)
    return Card(
        name=cell.axis("hardware"),
        vendor=described["vendor"],
        product=described["product"],
        arch=described["arch"],
        memory_bytes=round(described["memory_gib"] * 2**30),
        compute_units=described["compute_units"],
        shared_memory_bytes=described["shared_memory_kib"] * 1024,
        pci_device=described["pci_device"],
        devices=cell.model.devices // cell.nodes,
    )


def _present(wanted: Asked) -> dict[str, Any]:
    values = {
        "attention_backend": wanted.attention_backend,
        "moe_backend": wanted.moe_backend,
        "kv_cache_dtype": wanted.kv_cache_dtype,
    }
    return {name: value for name, value in values.items() if value is not None}
