"""Engines of several ranks, each a process: what each has, and ranks that disagree."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.contract.attempts import Attempt, Placement
from jobs.contract.builds import Patch, ProvisionedBuild
from jobs.contract.seen import ProbeReport
from jobs.node.builds.provision import provision
from jobs.node.run_cell import run_cell
from orchestrator.asked import cells
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import Cell
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from orchestrator.concluded.judge import Judgement, judge
from orchestrator.running.cluster import read_attempt

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

RANK_1_CHOOSES = Path(__file__).with_name("rank-1-chooses-another.diff")

CARDS = pytest.mark.parametrize("card", ["h100", "mi300x"])

Tried = Callable[..., tuple[Judgement, ProbeReport]]


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """What an emulated cell came to: card, model, and what else the configuration is to say."""
    folder = tmp_path_factory.mktemp("cells")

    def tried(
        card: str, model: str, *words: str, patch: Patch | None = None
    ) -> tuple[Judgement, ProbeReport]:
        cell, build, cache = _cell(card, model, *words, patch=patch)
        workdir = folder / str(len([*folder.iterdir()]))
        request = cell_request(cell, build, attempt=1, workdir=str(workdir), cache=cache)
        attempt: Attempt = read_attempt(run_cell(request, Placement(node="here")))
        assert attempt.report is not None
        return judge(cell, build, attempt), attempt.report

    return tried


@CARDS
def test_ranks_of_tensor_parallelism_have_a_share_of_every_layer(tried: Tried, card: str) -> None:
    judgement, report = tried(card, "llama31_8b_tp2")

    assert judgement.reasons == ()
    assert [(rank.rank, rank.tensor, rank.pipeline) for rank in report.ranks] == [
        (0, 0, 0),
        (1, 1, 0),
    ]
    [first], [second] = (rank.target for rank in report.ranks)
    assert (first.layers, first.kv_heads) == (32, 4)
    assert first == second
    assert report.target == (first,)
    assert report.emulated is not None
    assert report.emulated.card.devices == 2
    assert any(name.endswith("Platform.dist_backend") for name in report.emulated.replaced)


@CARDS
def test_stages_of_a_pipeline_have_layers_of_their_own_and_the_last_has_the_draft(
    tried: Tried, card: str
) -> None:
    judgement, report = tried(card, "llama31_8b_eagle3_pp2", "backend=[draft_triton_attn]")

    assert judgement.reasons == ()
    assert judgement.requests["draft.attention_backend"].verdict == "honoured"
    first, last = report.ranks
    assert (first.pipeline, last.pipeline) == (0, 1)
    assert [group.layers for group in (*first.target, *last.target)] == [16, 16]
    assert report.target == (*first.target, *last.target)
    assert first.draft == ()
    assert report.draft == last.draft
    assert first.kv_layout == last.kv_layout is not None


@CARDS
def test_ranks_of_expert_parallelism_have_experts_of_their_own(tried: Tried, card: str) -> None:
    judgement, report = tried(card, "mixtral_8x7b_ep2")

    assert judgement.reasons == ()
    assert [rank.expert for rank in report.ranks] == [0, 1]
    assert [group.local_experts for rank in report.ranks for group in rank.target_moe] == [4, 4]


@CARDS
def test_engines_of_data_parallelism_share_their_experts(tried: Tried, card: str) -> None:
    judgement, report = tried(card, "mixtral_8x7b_dp2")

    assert judgement.reasons == ()
    assert report.engine.data_parallel == 2
    assert [(rank.rank, rank.data, rank.expert) for rank in report.ranks] == [(0, 0, 0), (1, 1, 1)]
    assert [group.local_experts for rank in report.ranks for group in rank.target_moe] == [4, 4]
    assert {group.kv_heads for rank in report.ranks for group in rank.target} == {8}


def test_data_parallelism_that_vllm_refuses_is_a_refusal(tried: Tried) -> None:
    asked = "+model.llama31_8b_tp2.engine_args.data_parallel_size=2"
    alone = "model.llama31_8b_tp2.engine_args.tensor_parallel_size=1"
    judgement, report = tried("h100", "llama31_8b_tp2", asked, alone)

    assert judgement.outcome == "refused"
    assert report.failure is not None
    assert "dense models" in report.failure.root.message


@pytest.mark.parametrize("other", ["TRITON_ATTN", "FLEX_ATTENTION"])
def test_a_rank_that_chooses_another_backend_is_found(tried: Tried, other: str) -> None:
    """vLLM sees it only where the layouts differ that the backends take."""
    patch = Patch(name=RANK_1_CHOOSES.name, text=RANK_1_CHOOSES.read_text())
    chosen = f"+model.llama31_8b_tp2.env.MATRIX_OTHER_BACKEND={other}"
    judgement, report = tried("h100", "llama31_8b_tp2", chosen, patch=patch)

    assert judgement.category == "workers_disagree"
    if other == "FLEX_ATTENTION":
        assert report.failure is not None
        assert "Workers disagree" in report.failure.root.message
    else:
        assert judgement.outcome == "runs"
        [reason] = judgement.reasons
        assert reason.startswith("workers disagree about target.attention_backend of model.layers")
        assert "and 31 more: FLASH_ATTN " in reason
        assert reason.endswith("on rank 0; TRITON_ATTN (TritonAttentionBackend) on rank 1")


def _cell(
    card: str, model: str, *words: str, patch: Patch | None
) -> tuple[Cell, ProvisionedBuild, str]:
    backend = [] if any(word.startswith("backend=") for word in words) else ["backend=[auto]"]
    axes = [f"hardware=[{card}]", f"model=[{model}]", *backend, "build=[v0_32_gpu]"]
    [config] = compose([*axes, "engine_mode=emulated", "suite.check=init", *words])
    [spec] = build_specs(config).values()
    patched = dataclasses.replace(spec, patches=() if patch is None else (patch,))
    [cell] = cells.expand(config, {spec.name: patched})
    return cell, provision(patched, Path(config.cache), print), config.cache
