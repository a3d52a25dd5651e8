"""
The class that vLLM mixes into its worker, by name: `worker_extension_cls`.

vLLM looks the name up in every worker's process, right before the worker starts.
That is the moment to begin observing there, so the name is looked up by a function.
"""

import dataclasses
import json
from typing import Any

from jobs.probe import observers
from jobs.probe.reading import device, worker

NAME = f"{__name__}.Reading"
"""What to pass to the engine."""

METHOD = "vllm_matrix_read"
PEAK = "vllm_matrix_peak_mib"


class _Reading:
    def vllm_matrix_read(self) -> str:
        """
        What this rank sees, as JSON. Plain text: a subclass of str, such as torch's
        version, would end vLLM's output thread without a word.
        """
        return str(json.dumps(dataclasses.asdict(worker.read(self))))

    def vllm_matrix_peak_mib(self) -> int | None:
        return device.peak_mib()


def __getattr__(name: str) -> Any:
    if name != "Reading":
        raise AttributeError(name)
    observers.install()
    return _Reading
