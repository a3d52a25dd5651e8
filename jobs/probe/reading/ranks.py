"""One answer for the engine, from those of its ranks."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.contract.seen import AttentionGroup, Engine, MoeGroup, RankSeen, Rejection, Selection
from jobs.probe import rejections
from jobs.probe.reading.worker import WorkerReading


def read(texts: Iterable[str]) -> dict[str, Any]:
    """What every rank said of itself, by the report's fields."""
    return joined([_reading(text) for text in texts])


def joined(readings: Sequence[WorkerReading]) -> dict[str, Any]:
    """The engine is what the first rank of each pipeline stage says; all stand beside it."""
    first = readings[0]
    ranks = tuple(reading.seen for reading in readings)
    stages = [rank for rank in ranks if rank.tensor == rank.data == 0]
    drafts = [reading.engine.draft_class for reading in readings if reading.engine.draft_class]
    return {
        "ranks": ranks if len(ranks) > 1 else (),
        "device": first.device,
        "target": _union(rank.target for rank in stages),
        "draft": _union(rank.draft for rank in stages),
        "target_moe": _union(rank.target_moe for rank in stages),
        "draft_moe": _union(rank.draft_moe for rank in stages),
        "engine": dataclasses.replace(first.engine, draft_class=drafts[0] if drafts else None),
        "rejections": rejections.merged(_union(reading.rejections for reading in readings)),
        "selections": _union(reading.selections for reading in readings),
        "notes": _union(reading.notes for reading in readings),
    }


def _union(answers: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    different: list[Any] = []
    for answer in itertools.chain.from_iterable(answers):
        if answer not in different:
            different.append(answer)
    return tuple(different)


def _reading(text: str) -> WorkerReading:
    raw = json.loads(text)
    raw |= {
        "seen": _rank(raw["seen"]),
        "engine": Engine(**raw["engine"]),
        "rejections": tuple(map(_rejection, raw["rejections"])),
        "selections": tuple(map(_selection, raw["selections"])),
        "notes": tuple(raw["notes"]),
    }
    return WorkerReading(**raw)


def _rank(raw: dict[str, Any]) -> RankSeen:
    raw |= {
        "target": tuple(map(_attention_group, raw["target"])),
        "draft": tuple(map(_attention_group, raw["draft"])),
        "target_moe": tuple(MoeGroup(**group) for group in raw["target_moe"]),
        "draft_moe": tuple(MoeGroup(**group) for group in raw["draft_moe"]),
    }
    return RankSeen(**raw)


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
