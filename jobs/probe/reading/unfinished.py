"""What an engine that never got ready had already decided, where its worker is in this process."""

from typing import Any

from jobs.probe import observers
from jobs.probe.reading import ranks, worker


def read() -> dict[str, Any]:
    """By the report's fields; nothing when the engine died before it had a model runner."""
    started = observers.HERE.worker
    if getattr(started, "model_runner", None) is None:
        return {}
    return ranks.joined([worker.read(started)])
