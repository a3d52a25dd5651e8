"""One answer from several ranks."""

from jobs.contract.seen import AttentionGroup, Engine, RankSeen
from jobs.probe.reading import ranks
from jobs.probe.reading.worker import WorkerReading


def group(backend: str, *names: str) -> AttentionGroup:
    return AttentionGroup(
        kv_group=0,
        backend=backend,
        class_path=f"vllm.{backend}",
        layers=len(names),
        layer_names=names,
    )


def reading(
    rank: RankSeen, *, draft_class: str | None = None, notes: tuple[str, ...] = ()
) -> WorkerReading:
    return WorkerReading(
        seen=rank,
        device={"name": "a card"},
        engine=Engine(runner="V1", draft_class=draft_class),
        rejections=(),
        selections=(),
        notes=notes,
    )


def test_an_engine_of_one_rank_has_no_list_of_ranks() -> None:
    answer = ranks.joined([reading(RankSeen(rank=0, target=(group("A", "layer.0"),)))])

    assert answer["target"] == (group("A", "layer.0"),)
    assert answer["ranks"] == ()


def test_the_engine_is_what_its_first_rank_says_and_the_others_stand_beside_it() -> None:
    first = RankSeen(rank=0, tensor=0, target=(group("A", "layer.0"),))
    second = RankSeen(rank=1, tensor=1, target=(group("B", "layer.0"),))

    answer = ranks.joined([reading(first), reading(second)])

    assert answer["target"] == (group("A", "layer.0"),)
    assert answer["ranks"] == (first, second)


def test_each_pipeline_stage_adds_its_layers_and_the_last_one_the_draft() -> None:
    first = RankSeen(rank=0, pipeline=0, target=(group("A", "layer.0"),))
    last = RankSeen(
        rank=1, pipeline=1, target=(group("A", "layer.1"),), draft=(group("B", "draft.0"),)
    )

    answer = ranks.joined([reading(first), reading(last, draft_class="Draft")])

    assert answer["target"] == (group("A", "layer.0"), group("A", "layer.1"))
    assert answer["draft"] == (group("B", "draft.0"),)
    assert answer["engine"] == Engine(runner="V1", draft_class="Draft")


def test_what_several_ranks_note_is_noted_once() -> None:
    answer = ranks.joined([reading(RankSeen(rank=rank), notes=("the same",)) for rank in range(2)])

    assert answer["notes"] == ("the same",)
