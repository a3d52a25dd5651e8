"""One answer for the engine, from those of its ranks."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.contract.seen import AttentionGroup, Engine, MoeGroup, Rejection, Selection
from jobs.probe import rejections
from jobs.probe.reading.worker import WorkerReading


def read(llm: Any, method: str) -> dict[str, Any]:
    """Ask every rank; the answer is by the report's fields."""
    return joined([_reading(text) for text in llm.collective_rpc(method)])


def joined(readings: Sequence[WorkerReading]) -> dict[str, Any]:
    """Ranks of tensor parallelism repeat each other; pipeline stages have layers of their own."""
    first = readings[0]
    drafts = [reading.engine.draft_class for reading in readings if reading.engine.draft_class]
    return {
        "device": first.device,
        "target": _union(reading.target for reading in readings),
        "draft": _union(reading.draft for reading in readings),
        "target_moe": _union(reading.target_moe for reading in readings),
        "draft_moe": _union(reading.draft_moe for reading in readings),
        "engine": dataclasses.replace(first.engine, draft_class=drafts[0] if drafts else None),
        "rejections": rejections.merged(_union(reading.rejections for reading in readings)),
        "selections": _union(reading.selections for reading in readings),
        "notes": (*_union(reading.notes for reading in readings), *_disagreements(readings)),
    }


def _union(answers: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    different: list[Any] = []
    for answer in itertools.chain.from_iterable(answers):
        if answer not in different:
            different.append(answer)
    return tuple(different)


def _disagreements(readings: Sequence[WorkerReading]) -> Iterable[str]:
    """Layers that have one backend on one rank and another on the next."""
    backends: dict[str, dict[str, list[int]]] = {}
    for reading in readings:
        for group in (*reading.target, *reading.draft):
            for name in group.layer_names:
                backends.setdefault(name, {}).setdefault(group.class_path, []).append(reading.rank)
    for name, found in backends.items():
        if len(found) > 1:
            ranks = "; ".join(f"{path} on ranks {ranks}" for path, ranks in found.items())
            yield f"ranks disagree about {name}: {ranks}"


def _reading(text: str) -> WorkerReading:
    raw = json.loads(text)
    raw |= {
        "target": tuple(map(_attention_group, raw["target"])),
        "draft": tuple(map(_attention_group, raw["draft"])),
        "target_moe": tuple(MoeGroup(**group) for group in raw["target_moe"]),
        "draft_moe": tuple(MoeGroup(**group) for group in raw["draft_moe"]),
        "engine": Engine(**raw["engine"]),
        "rejections": tuple(map(_rejection, raw["rejections"])),
        "selections": tuple(map(_selection, raw["selections"])),
        "notes": tuple(raw["notes"]),
    }
    return WorkerReading(**raw)


def _attention_group(raw: dict[str, Any]) -> AttentionGroup:
    layouts = raw["layouts"]
    raw |= {
        "layer_names": tuple(raw["layer_names"]),
        "layouts": tuple(layouts) if layouts is not None else None,
    }
    return AttentionGroup(**raw)


def _rejection(raw: dict[str, Any]) -> Rejection:
    return Rejection(**(raw | {"reasons": tuple(raw["reasons"])}))


def _selection(raw: dict[str, Any]) -> Selection:
    changed = {
        "accepted": tuple(raw["accepted"]),
        "rejected": tuple(map(_rejection, raw["rejected"])),
    }
    return Selection(**(raw | changed))
