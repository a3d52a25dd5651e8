"""The product of the axes, and what is left of it."""

from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from jobs.contract.builds import BuildSpec
from jobs.contract.emulation import Card
from jobs.contract.terms import EngineMode
from orchestrator.asked import digests
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import Cell, expand, merge
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from orchestrator.errors import ConfigError, NothingToRunError
from orchestrator.run import cells_of
from tests.builders import EAGLE3, H100, a_build, a_cell, an_emulated_cell

AXES = ["hardware=[cpu]", "model=[llama,llama_eagle3]", "backend=[auto]", "build=[v0_32]"]


def ids(*words: str) -> list[str]:
    return [cell.id for cell in cells_of(compose(words))]


def test_cells_come_in_the_order_of_the_axes() -> None:
    assert ids(*AXES) == snapshot(["cpu/llama/auto/v0_32", "cpu/llama_eagle3/auto/v0_32"])


def test_a_drafts_backend_meets_only_models_with_a_draft() -> None:
    assert ids(*AXES, "backend=[draft_triton_attn]") == ["cpu/llama_eagle3/draft_triton_attn/v0_32"]


def test_a_vendors_backend_meets_only_its_hardware() -> None:
    words = [*AXES, "hardware=[cpu,h200]", "model=[llama]", "backend=[cpu_attn]"]

    assert ids(*words) == ["cpu/llama/cpu_attn/v0_32"]


def test_a_selection_narrows_a_suite() -> None:
    assert ids("suite=demo", "suite.select=['*/gemma3/auto/*']") == [
        "cpu/gemma3/auto/v0_32",
        "cpu/gemma3/auto/v0_32_strict_cpu",
    ]


def test_a_constraint_keeps_only_what_it_allows() -> None:
    constraint = "suite.constraints=[{when: '*/llama_*', only: '*/x/*', why: 'for this test'}]"

    assert ids(*AXES, constraint) == ["cpu/llama/auto/v0_32"]


def test_a_selection_that_matches_nothing_says_what_cells_look_like() -> None:
    with pytest.raises(NothingToRunError, match="such as cpu/llama/auto/v0_32"):
        ids(*AXES, "suite.select=['b200/*']")


def test_an_axis_without_a_choice_is_named() -> None:
    with pytest.raises(
        NothingToRunError, match=r"no hardware .* is chosen; add hardware=\[\.\.\.\]"
    ):
        ids()


def test_a_multirun_gives_the_same_cells_as_lists_do() -> None:
    swept = ids("-m", "hardware=cpu,h200", "model=llama,gemma3", "backend=auto", "build=v0_32")

    listed = ["hardware=[cpu,h200]", "model=[llama,gemma3]", "backend=[auto]", "build=[v0_32]"]
    assert sorted(swept) == sorted(ids(*listed))


def test_a_multirun_over_a_suite_is_one_matrix() -> None:
    assert sorted(ids("-m", "suite=demo", "model=llama,gemma3")) == sorted(
        ids("suite=demo", "model=[llama,gemma3]")
    )


def test_a_multirun_that_describes_a_cell_in_two_ways_is_refused() -> None:
    with pytest.raises(ConfigError, match="cpu/llama/auto/v0_32: its deadlines differ"):
        ids("-m", "deadline_s=10,20", "hardware=cpu", "model=llama", "backend=auto", "build=v0_32")


def test_the_last_expectation_that_matches_counts() -> None:
    config = compose(["suite=demo"])[0]
    found = {cell.id: cell for cell in expand(config, build_specs(config))}

    assert found["cpu/llama/unknown_attn/v0_32"].expectation.outcome == ("refused",)
    assert found["cpu/llama/auto/v0_32"].expectation.outcome == ("runs",)


def test_cells_that_two_jobs_agree_on_are_one() -> None:
    assert merge([[a_cell()], [a_cell()]]) == (a_cell(),)


# What a cell's digest covers decides what a resumed run does again.


def digest(cell: Cell, build: str = "d1") -> str:
    return digests.hashed(cell.parts(build))


def test_another_build_is_another_digest() -> None:
    assert digest(a_cell(), "d1") != digest(a_cell(), "d2")


def test_another_draft_is_another_digest() -> None:
    assert digest(a_cell(speculative=EAGLE3)) != digest(a_cell())


def test_how_long_a_cell_may_take_does_not_change_what_it_does() -> None:
    assert digest(a_cell(attempts=1)) == digest(a_cell(attempts=3))


def test_a_shipped_models_files_are_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(a_cell())
    monkeypatch.setattr(digests, "MODELS", digests.MODELS.parent)

    assert digest(a_cell()) != before


def test_the_name_of_a_build_does_not_count_but_its_content_does() -> None:
    renamed = a_cell("cpu/llama/auto/other")

    assert renamed.build == BuildSpec(name="other", release="0.32.0")
    assert digest(renamed) == digest(a_cell())


# What is emulated never looks real.

EMULATED = ["engine_mode=emulated", "suite.check=init", "hardware=[h200]"]


def test_the_id_of_an_emulated_cell_says_so() -> None:
    [cell] = cells_of(compose([*AXES, *EMULATED, "model=[llama]"]))

    assert cell.id == "h200-emulated/llama/auto/v0_32"
    assert cell.axis("hardware") == "h200"


def test_both_engine_modes_of_one_card_are_cells_of_their_own() -> None:
    words = ["-m", "engine_mode=real,emulated", "suite.check=init", "hardware=h200"]

    found = ids(*words, "model=llama", "backend=auto", "build=v0_32")

    assert found == ["h200/llama/auto/v0_32", "h200-emulated/llama/auto/v0_32"]


def test_what_is_said_of_a_card_counts_only_where_it_is_emulated() -> None:
    smaller = replace(H100, memory_gib=40)

    assert digest(an_emulated_cell()) != digest(an_emulated_cell(hardware=smaller))
    assert digest(an_emulated_cell()) == digest(
        an_emulated_cell(hardware=replace(H100, source="a log"))
    )
    assert digest(a_cell(hardware=H100)) == digest(a_cell(hardware=smaller))
    assert digest(replace(an_emulated_cell(), engine_mode=EngineMode.REAL)) != digest(
        an_emulated_cell()
    )


def test_an_emulated_engine_is_told_what_its_card_is() -> None:
    cell = an_emulated_cell(devices=2)

    request = cell_request(cell, a_build(), attempt=1, workdir="w", cache="c")

    assert request.probe.card == Card(
        name="h100",
        vendor="nvidia",
        product="NVIDIA H100 80GB HBM3",
        arch="sm_90",
        memory_bytes=80 << 30,
        compute_units=132,
        shared_memory_bytes=227 << 10,
        devices=2,
    )


def test_a_real_engine_asks_its_card_itself() -> None:
    request = cell_request(a_cell(), a_build(), attempt=1, workdir="w", cache="c")

    assert request.probe.card is None
