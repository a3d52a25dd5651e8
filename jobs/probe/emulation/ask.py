"""
One question after the other to vLLM's attention selector, without an engine.

`python -m jobs.probe.emulation.ask ANSWERS < QUESTIONS`, in the environment of an emulated
host. Both are JSON, one object a line, in the same order. A question has the arguments of
the selector by name, and what the engine's configuration would say:

    {"head_size": 128, "dtype": "bfloat16", "kv_cache_dtype": "auto", "num_heads": 32,
     "use_mla": false, ..., "requested": "FLASHINFER", "block_size": 16, "use_non_causal": true}

Only *head_size* must be there. An answer has the backend that a layer would get, and the
selector's table, or the error's text.
"""

import functools
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.contract.seen import Selection
from jobs.probe import environment, selections, tables
from jobs.probe.emulation import start
from jobs.probe.reading import attention
from jobs.probe.reading.naming import class_path

OF_THE_ENGINE = ("requested", "block_size", "use_non_causal")
"""What a question says of the engine's configuration; all else are the selector's arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    backend: str | None = None
    """The member of vLLM's enum."""

    class_path: str | None = None
    layouts: tuple[str, ...] | None = None
    error: str | None = None
    table: Selection | None = None


def ask(question: Mapping[str, Any]) -> Answer:
    """Once the emulation is installed, see `start`."""
    from vllm.config import set_current_vllm_config
    from vllm.v1.attention.selector import get_attn_backend

    selections.observe()
    selections.HERE.seen.clear()
    said = {"dtype": "bfloat16", "kv_cache_dtype": "auto"} | dict(question)
    of_the_engine = {name: said.pop(name, None) for name in OF_THE_ENGINE}
    # vLLM may refuse in any way; its words are the answer.
    try:
        with set_current_vllm_config(_engine_config(said["kv_cache_dtype"], **of_the_engine)):
            backend = get_attn_backend(**said | {"dtype": _dtype(said["dtype"])})
    except Exception as error:  # noqa: BLE001
        return Answer(error=f"{type(error).__name__}: {error}", table=_table())
    return Answer(
        backend=attention.backend_name(backend),
        class_path=class_path(backend),
        layouts=attention.layouts(backend),
        table=_table(),
    )


def _table() -> Selection | None:
    found = tables.of_all(selections.HERE.seen[-1:])
    return found[0] if found else None


@functools.cache
def _engine_config(
    kv_cache_dtype: str,
    *,
    requested: str | None,
    block_size: int | None,
    use_non_causal: bool | None,
) -> Any:
    from vllm.config import AttentionConfig, CacheConfig, VllmConfig

    cache = {"cache_dtype": kv_cache_dtype, "block_size": block_size}
    attention_ = {"backend": requested, "use_non_causal": use_non_causal}
    return VllmConfig(
        cache_config=CacheConfig(**_given(cache)),
        attention_config=AttentionConfig(**_given(attention_)),
    )


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)


def main(answers: Path) -> None:
    environment.prepare()
    start.install()
    # A file: vLLM prints to standard output as well.
    with answers.open("w") as file:
        for line in sys.stdin:
            print(json.dumps(asdict(ask(json.loads(line)))), file=file, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
