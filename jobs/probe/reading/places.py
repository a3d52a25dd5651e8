"""Where in its engine a rank is."""

from typing import Any

from jobs.probe import seats
from jobs.probe.reading.naming import follow


def read(worker: Any) -> dict[str, Any]:
    """By the fields of RankSeen."""
    from vllm.distributed import parallel_state

    parallel = worker.vllm_config.parallel_config
    data = _data(parallel)
    return {
        "rank": data * parallel.world_size + worker.rank,
        "tensor": parallel_state.get_tp_group().rank_in_group,
        "pipeline": parallel_state.get_pp_group().rank_in_group,
        "data": data,
        "expert": _expert(parallel_state) if parallel.enable_expert_parallel else None,
        "node": seats.node(),
    }


def _data(parallel: Any) -> int:
    """Engines without experts are as if they were alone, but for their index."""
    index = follow(parallel, "data_parallel_index")
    return int(parallel.data_parallel_rank if index is None else index)


def _expert(parallel_state: Any) -> int | None:
    """A model without experts has no group of theirs."""
    group = getattr(parallel_state, "_EP", None)
    return None if group is None else int(group.rank_in_group)
