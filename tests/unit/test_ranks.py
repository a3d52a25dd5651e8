"""Ranks of one engine that have different things where they should have the same."""

from dataclasses import replace

from jobs.contract.seen import AttentionGroup, MoeGroup, RankSeen
from orchestrator.asked.config import Asked
from orchestrator.concluded.judge import Judgement, Verdict, judge
from orchestrator.concluded.ranks import disagreements
from tests.builders import a_build, a_cell, a_report, an_attempt, groups

EXPERTS = MoeGroup(backend="TRITON", experts_class="x.Experts", quant_method="q", layers=2)


def told(*ranks: RankSeen) -> list[str]:
    return [str(each) for each in disagreements(ranks)]


def judged(*ranks: RankSeen, target: Asked | None = None) -> Judgement:
    report = replace(a_report(target=ranks[0].target, tokens=(1,)), ranks=ranks)
    return judge(a_cell(target=target), a_build(), an_attempt(report))


def test_ranks_that_have_the_same_agree() -> None:
    ranks = [RankSeen(rank=n, tensor=n, target=groups("A"), kv_layout="LBNHC") for n in range(2)]

    assert told(*ranks) == []


def test_layers_that_differ_alike_are_told_together_with_what_each_rank_has() -> None:
    one, *others = [RankSeen(rank=n, tensor=n, target=groups("A")) for n in range(3)]
    [last] = [replace(others.pop(), target=groups("B"))]

    assert told(one, *others, last) == [
        (
            "workers disagree about target.attention_backend of layers.0.attn and 1 more:"
            " A (A) on ranks 0, 1; B (B) on rank 2"
        )
    ]


def test_classes_of_the_same_name_are_not_the_same() -> None:
    [group] = groups("A")
    other = replace(group, class_path="elsewhere.Aiter")
    first, second = RankSeen(rank=0, target=(group,)), RankSeen(rank=1, target=(other,))

    assert "A (A) on rank 0; A (Aiter) on rank 1" in told(first, second)[0]


def test_stages_of_a_pipeline_may_differ_in_all_but_layout_and_runner() -> None:
    first = RankSeen(rank=0, pipeline=0, target=layers("A", "layers.0"), target_moe=(EXPERTS,))
    other = replace(EXPERTS, backend="CUTLASS")
    last = RankSeen(rank=1, pipeline=1, target=layers("B", "layers.1"), target_moe=(other,))

    assert told(first, last) == []
    assert told(replace(first, kv_layout="NHD"), replace(last, kv_layout="HND")) == [
        "workers disagree about kv_layout of the engine: NHD on rank 0; HND on rank 1"
    ]


def test_experts_of_one_stage_have_one_backend_however_they_are_spread() -> None:
    one = RankSeen(rank=0, expert=0, target_moe=(replace(EXPERTS, local_experts=3),))
    more = RankSeen(rank=1, expert=1, target_moe=(replace(EXPERTS, local_experts=2),))
    other = replace(more, target_moe=(replace(EXPERTS, backend="CUTLASS"),))

    assert told(one, more) == []
    assert told(one, other) == [
        (
            "workers disagree about target.moe_backend of stage 0:"
            " 2 of TRITON on rank 0; 2 of CUTLASS on rank 1"
        )
    ]


def test_an_engine_whose_workers_disagree_fails_although_its_first_rank_has_what_was_asked() -> (
    None
):
    first = RankSeen(rank=0, target=groups("A"))
    judgement = judged(
        first,
        RankSeen(rank=1, tensor=1, target=groups("B")),
        target=Asked(attention_backend="A"),
    )

    assert judgement.verdict is Verdict.FAILED
    assert judgement.category == "workers_disagree"
    assert judgement.outcome == "runs"
    assert "A (A) on rank 0; B (B) on rank 1" in judgement.reasons[0]


def test_an_engine_whose_workers_agree_passes() -> None:
    ranks = [RankSeen(rank=n, tensor=n, target=groups("A")) for n in range(2)]

    assert judged(*ranks).verdict is Verdict.PASSED


def layers(backend: str, *names: str) -> tuple[AttentionGroup, ...]:
    [group] = groups(backend)
    return (replace(group, layers=len(names), layer_names=names),)
