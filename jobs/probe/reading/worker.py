"""One rank's answer: everything that it can say about itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jobs.contract import AttentionGroup, Engine, MoeGroup, Rejection
from jobs.probe import rejections
from jobs.probe.reading import attention, device, engine, moe
from jobs.probe.reading.owners import Owners


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerReading:
    rank: int
    device: dict[str, str]
    target: tuple[AttentionGroup, ...]
    draft: tuple[AttentionGroup, ...]
    target_moe: tuple[MoeGroup, ...]
    draft_moe: tuple[MoeGroup, ...]
    engine: Engine
    rejections: tuple[Rejection, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notes:
    lines: list[str] = field(default_factory=list)

    def attempt(self, what: str, read: Callable[[], Any], otherwise: Any) -> Any:
        # A version of vLLM may keep a fact elsewhere, or not have it at all. The cell's
        # result must not depend on that: whatever happens is noted.
        try:
            return read()
        except Exception as error:  # noqa: BLE001
            self.lines.append(f"{what} could not be read: {type(error).__name__}: {error}")
            return otherwise


def read(worker: Any) -> WorkerReading:
    notes = Notes()
    runner = worker.model_runner
    owners = Owners.of(runner)
    layers = notes.attempt("attention layers", lambda: attention.layers(worker.vllm_config), {})
    target, draft = owners.split(layers)
    target_groups = notes.attempt("target attention", lambda: attention.groups(runner, target), ())
    draft_groups = notes.attempt("draft attention", lambda: attention.groups(runner, draft), ())
    taken = {group.backend for group in (*target_groups, *draft_groups)}
    return WorkerReading(
        rank=worker.rank,
        device=notes.attempt("device", device.read, {}),
        target=target_groups,
        draft=draft_groups,
        target_moe=notes.attempt("target MoE", lambda: moe.groups(owners.target_model), ()),
        draft_moe=notes.attempt("draft MoE", lambda: moe.groups(owners.draft_model), ()),
        engine=notes.attempt("engine", lambda: engine.read(worker, owners), Engine()),
        rejections=notes.attempt("rejections", lambda: rejections.all_but(taken), ()),
        notes=(*owners.contradictions(layers), *notes.lines),
    )
