"""One answer from several ranks."""

from jobs.contract.seen import AttentionGroup, Engine
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
    rank: int,
    *target: AttentionGroup,
    draft: tuple[AttentionGroup, ...] = (),
    draft_class: str | None = None,
) -> WorkerReading:
    return WorkerReading(
        rank=rank,
        device={"name": "a card"},
        target=target,
        draft=draft,
        target_moe=(),
        draft_moe=(),
        engine=Engine(runner="V1", draft_class=draft_class),
        rejections=(),
        selections=(),
        notes=(),
    )


def test_ranks_that_say_the_same_are_one_answer() -> None:
    answer = ranks.joined([reading(0, group("A", "layer.0")), reading(1, group("A", "layer.0"))])

    assert answer["target"] == (group("A", "layer.0"),)
    assert answer["notes"] == ()


def test_each_pipeline_stage_adds_its_layers_and_the_last_one_the_draft() -> None:
    first = reading(0, group("A", "layer.0"))
    last = reading(1, group("A", "layer.1"), draft=(group("B", "draft.0"),), draft_class="Draft")

    answer = ranks.joined([first, last])

    assert answer["target"] == (group("A", "layer.0"), group("A", "layer.1"))
    assert answer["draft"] == (group("B", "draft.0"),)
    assert answer["engine"] == Engine(runner="V1", draft_class="Draft")


def test_ranks_that_disagree_about_a_layer_are_told_on() -> None:
    answer = ranks.joined([reading(0, group("A", "layer.0")), reading(1, group("B", "layer.0"))])

    assert answer["notes"] == (
        "ranks disagree about layer.0: vllm.A on ranks [0]; vllm.B on ranks [1]",
    )
