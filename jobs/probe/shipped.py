"""`shipped:NAME` is a model configuration that comes with the project."""

from pathlib import Path
from typing import Any

MODELS = Path(__file__).parents[1] / "models"
PREFIX = "shipped:"


def resolve(engine_args: dict[str, Any]) -> dict[str, Any]:
    """The engine's arguments with real folders for shipped models, of target and draft."""
    resolved = dict(engine_args)
    if "model" in engine_args:
        resolved["model"] = _folder(engine_args["model"])
    if engine_args.get("speculative_config"):
        resolved["speculative_config"] = resolve(engine_args["speculative_config"])
    return resolved


def _folder(model: str) -> str:
    if not model.startswith(PREFIX):
        return model
    folder = MODELS / model.removeprefix(PREFIX)
    if folder.parent != MODELS or not (folder / "config.json").exists():
        names = ", ".join(sorted(path.name for path in MODELS.iterdir()))
        raise ValueError(f"{model}: no such model comes with the project; there are {names}")
    return str(folder)
