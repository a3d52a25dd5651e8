"""One rank's answer: everything that it can say about itself."""

from dataclasses import dataclass
from typing import Any

from jobs.contract.seen import Engine, RankSeen, Rejection, Selection
from jobs.probe import rejections, selections, tables
from jobs.probe.emulation import loader
from jobs.probe.notes import Notes
from jobs.probe.reading import attention, device, engine, moe, places
from jobs.probe.reading.owners import Owners


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerReading:
    seen: RankSeen
    device: dict[str, str]
    engine: Engine
    rejections: tuple[Rejection, ...]
    selections: tuple[Selection, ...]
    notes: tuple[str, ...]


def read(worker: Any) -> WorkerReading:
    notes = Notes()
    runner = worker.model_runner
    owners = Owners.of(runner, loaded=loader.layers_of_drafts(worker.vllm_config.model_config))
    layers = notes.attempt("attention layers", lambda: attention.layers(worker.vllm_config), {})
    target, draft = owners.split(layers)
    place = notes.attempt("place among the ranks", lambda: places.read(worker), {})
    whole = notes.attempt("engine", lambda: engine.read(worker, owners), Engine())
    target_groups = notes.attempt("target attention", lambda: attention.groups(runner, target), ())
    draft_groups = notes.attempt("draft attention", lambda: attention.groups(runner, draft), ())
    taken = {group.backend for group in (*target_groups, *draft_groups)}
    return WorkerReading(
        seen=RankSeen(
            **{"rank": worker.rank} | place,
            target=target_groups,
            draft=draft_groups,
            target_moe=notes.attempt("target MoE", lambda: moe.groups(owners.target_model), ()),
            draft_moe=notes.attempt("draft MoE", lambda: moe.groups(owners.draft_model), ()),
            kv_layout=whole.kv_layout,
            runner=whole.runner,
        ),
        device=notes.attempt("device", device.read, {}),
        engine=whole,
        rejections=notes.attempt("rejections", lambda: rejections.of_this_process(taken=taken), ()),
        selections=notes.attempt("selections", lambda: tables.of_all(selections.HERE.seen), ()),
        notes=(*owners.contradictions(layers), *notes.lines),
    )
