"""What became of every cell and request since a baseline."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.contract.builds import BuildSpec
from jobs.contract.seen import ProbeReport
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, Expectation
from orchestrator.asked.policies import ChangeKind
from orchestrator.concluded import matrix
from orchestrator.concluded.comparison import CellChange, Comparison, Side, compare, of_build
from orchestrator.concluded.judge import judge, not_run
from orchestrator.concluded.predictions import Disagreement
from orchestrator.concluded.record import Record
from tests.builders import (
    EAGLE3,
    H100,
    MI300X,
    a_build,
    a_cell,
    a_failed_report,
    a_report,
    an_attempt,
    an_emulated_cell,
    groups,
)

Answered = tuple[Cell, Record | None]

HEALTHY = a_report(target=groups("A"))
OTHERWISE = a_report(target=groups("B"))
BROKEN = a_failed_report("No KV cache layout satisfies it")
NO_SPACE = a_failed_report("No space left on device", type_="OSError")


def answered(
    cell: Cell | str, report: ProbeReport | None, version: str = "0.32.0", **more: Any
) -> Answered:
    """The cell, and what a node that ran it would have recorded."""
    asked = a_cell(cell) if isinstance(cell, str) else cell
    build = a_build(asked.build.name, vllm_version=version)
    attempt = an_attempt(report, cell_id=asked.id)
    judgement = judge(asked, build, attempt)
    return asked, Record(
        cell_id=asked.id, build=build, attempt=attempt, judgement=judgement, **more
    )


def side(name: str, *found: Answered, **more: Any) -> Side:
    cells = [cell for cell, _ in found]
    return Side(name=name, matrix=replace(matrix.build(cells, [r for _, r in found if r]), **more))


def one(then: Answered, now: Answered, **more: Any) -> CellChange:
    [change] = compare(side("base", then), side("run", now, **more)).cells
    return change


CELL = "cpu/llama/auto/v0_32"


@pytest.mark.parametrize(
    ("kind", "then", "now"),
    [
        (ChangeKind.REGRESSED, answered(CELL, HEALTHY), answered(CELL, BROKEN)),
        (ChangeKind.FIXED, answered(CELL, BROKEN), answered(CELL, HEALTHY)),
        (ChangeKind.UNCHANGED, answered(CELL, HEALTHY), answered(CELL, HEALTHY)),
        (ChangeKind.DRIFT, answered(CELL, HEALTHY), answered(CELL, OTHERWISE)),
        (ChangeKind.BROKEN_BEFORE, answered(CELL, BROKEN), answered(CELL, BROKEN)),
        (ChangeKind.INFRASTRUCTURE, answered(CELL, HEALTHY), answered(CELL, NO_SPACE)),
        (ChangeKind.INFRASTRUCTURE, answered(CELL, HEALTHY), (a_cell(), None)),
        (ChangeKind.NO_BASELINE, (a_cell(), None), answered(CELL, HEALTHY)),
        (ChangeKind.NO_BASELINE, answered(CELL, NO_SPACE), answered(CELL, BROKEN)),
        (
            ChangeKind.FLAKY,
            answered(CELL, HEALTHY, digest="same"),
            answered(CELL, BROKEN, digest="same"),
        ),
        (
            ChangeKind.FLAKY,
            answered(CELL, HEALTHY),
            answered(CELL, HEALTHY, earlier=("segfault: SIGSEGV",)),
        ),
    ],
)
def test_every_kind(kind: ChangeKind, then: Answered, now: Answered) -> None:
    assert one(then, now).kind is kind


def test_a_cell_that_a_real_card_contradicts_is_mispredicted_whatever_else_it_is() -> None:
    wrong = Disagreement(
        cell_id=CELL, field="runner", predicted="V1", observed="V2", source="a real card"
    )
    change = one(answered(CELL, HEALTHY), answered(CELL, BROKEN), disagreements=(wrong,))

    assert change.kind is ChangeKind.MISPREDICTED
    assert change.reason == str(wrong)


def test_a_failure_of_the_cluster_before_a_pass_makes_no_cell_flaky() -> None:
    now = answered(CELL, HEALTHY, earlier=("no_space: disk full", "the node went away"))

    assert one(answered(CELL, HEALTHY), now).kind is ChangeKind.UNCHANGED


def test_both_are_held_against_what_is_expected_now() -> None:
    refusal = Expectation(outcome=("refused",))
    then = answered(CELL, BROKEN)
    now = answered(a_cell(expect=refusal), BROKEN)

    assert one(then, now).kind is ChangeKind.UNCHANGED
    assert one(answered(CELL, HEALTHY), now).kind is ChangeKind.FIXED


def test_it_says_with_which_vllm_each_was() -> None:
    change = one(answered(CELL, HEALTHY, "0.31.0"), answered(CELL, BROKEN, "0.32.0"))

    assert change.before is not None
    assert (change.before.vllm_version, change.after.vllm_version) == ("0.31.0", "0.32.0")
    assert (change.before.category, change.after.category) == (None, "kv_layout_conflict")


# Requests


def with_draft(target: str, draft: str) -> Answered:
    asks = Asked(attention_backend="T"), Asked(attention_backend="D")
    cell = a_cell(target=asks[0], draft=asks[1], speculative=EAGLE3)
    return answered(cell, a_report(target=groups(target), draft=groups(draft)))


def test_each_request_has_a_kind_of_its_own() -> None:
    change = one(with_draft("T", "X"), with_draft("X", "D"))

    assert change.kind is ChangeKind.BROKEN_BEFORE
    assert {field: each.kind for field, each in change.requests.items()} == {
        "target.attention_backend": ChangeKind.REGRESSED,
        "draft.attention_backend": ChangeKind.FIXED,
        "target.kv_cache_dtype": ChangeKind.UNCHANGED,
        "draft.kv_cache_dtype": ChangeKind.UNCHANGED,
        "runner": ChangeKind.UNCHANGED,
        "block_size": ChangeKind.UNCHANGED,
    }


def test_a_cell_that_was_not_seen_twice_gives_its_kind_to_what_it_asks() -> None:
    cell, _ = with_draft("T", "D")
    change = one((cell, None), with_draft("T", "D"))

    assert {field: each.kind for field, each in change.requests.items()} == {
        "target.attention_backend": ChangeKind.NO_BASELINE,
        "draft.attention_backend": ChangeKind.NO_BASELINE,
    }


# What asks the same


def test_names_of_files_do_not_matter() -> None:
    then = answered("cpu/llama/auto/v0_31", HEALTHY)
    now = answered("cpu/llama_3/default/v0_32_cpu", HEALTHY)
    change = one(then, now)

    assert (change.kind, change.base_id) == (ChangeKind.UNCHANGED, "cpu/llama/auto/v0_31")


def test_what_is_asked_matters_whatever_its_name() -> None:
    change = one(answered(CELL, HEALTHY), answered(a_cell(dtype="float16"), HEALTHY))

    assert change.kind is ChangeKind.NO_BASELINE
    assert change.reason == f"{CELL} of base asks something else: dtype"


def test_a_new_card_has_no_baseline_and_breaks_no_history() -> None:
    h100 = a_cell("h100/llama/auto/v0_32", hardware=H100)
    mi300x = a_cell("mi300x/llama/auto/v0_32", hardware=MI300X)
    found = compare(
        side("base", answered(h100, HEALTHY)),
        side("run", answered(h100, HEALTHY), answered(mi300x, HEALTHY)),
    )

    assert [each.kind for each in found.cells] == [ChangeKind.UNCHANGED, ChangeKind.NO_BASELINE]
    assert found.cells[1].reason == "no cell of base asks this"


def test_how_a_card_is_described_may_be_mended() -> None:
    described = replace(H100, memory_gib=81, source="the maker")
    one_, other = (
        answered(a_cell("h100/llama/auto/v0_32", hardware=each), HEALTHY)
        for each in (H100, described)
    )

    assert one(one_, other).kind is ChangeKind.UNCHANGED


def test_emulated_and_real_engines_are_never_compared() -> None:
    emulated = an_emulated_cell("h100-emulated/llama/auto/v0_32")
    real = a_cell("h100/llama/auto/v0_32", hardware=H100)
    found = compare(side("base", answered(emulated, HEALTHY)), side("run", answered(real, HEALTHY)))

    assert not found.has_common_ground
    assert found.gone == (emulated.id,)


def of_release(cell_id: str, release: str, report: ProbeReport = HEALTHY) -> Answered:
    cell = a_cell(cell_id)
    spec = BuildSpec(name=cell.build.name, release=release)
    return answered(replace(cell, build=spec), report, release)


def test_builds_are_compared_by_name_or_else_by_what_they_are() -> None:
    base = side(
        "base",
        of_release("cpu/llama/auto/old", "0.31.0", BROKEN),
        of_release("cpu/llama/auto/new", "0.32.0"),
    )
    run = side(
        "run",
        of_release("cpu/llama/auto/v0_31", "0.31.0"),
        of_release("cpu/llama/auto/new", "0.33.0"),
        of_release("cpu/llama/auto/third", "0.34.0"),
    )
    found = compare(base, run)

    assert [(each.kind, each.base_id) for each in found.cells] == [
        (ChangeKind.FIXED, "cpu/llama/auto/old"),
        (ChangeKind.UNCHANGED, "cpu/llama/auto/new"),
        (ChangeKind.NO_BASELINE, None),
    ]
    assert found.gone == ()


def test_a_baseline_of_one_build_is_compared_with_every_build() -> None:
    run = side("run", of_release("cpu/llama/auto/a", "1"), of_release("cpu/llama/auto/b", "2"))
    found = compare(of_build(run, "a"), run)

    assert [each.base_id for each in found.cells] == ["cpu/llama/auto/a"] * 2
    assert found.base == "run:a"


# Whatever there is


QUESTIONS = st.tuples(
    st.sampled_from(["h100", "mi300x"]),
    st.sampled_from(["float16", "bfloat16"]),
    st.sampled_from(["auto", "default"]),
    st.sampled_from(["v0_31", "v0_32"]),
)
"""A card, what is asked of it, what the question is called, and of which build."""

REPORTS = st.sampled_from([HEALTHY, OTHERWISE, BROKEN, NO_SPACE, None])


def _answered(question: tuple[str, str, str, str], report: ProbeReport | None) -> Answered:
    card, dtype, name, build = question
    hardware = H100 if card == "h100" else MI300X
    cell = a_cell(f"{card}/{dtype}/{name}/{build}", hardware=hardware, dtype=dtype)
    cell = replace(cell, build=BuildSpec(name=build, release=build))
    if report is None:
        return cell, Record(cell_id=cell.id, judgement=not_run("no node"))
    return answered(cell, report)


SIDES = st.dictionaries(QUESTIONS, REPORTS, max_size=8).map(
    lambda found: [_answered(*each) for each in found.items()]
)


def ids(found: Sequence[Answered]) -> list[str]:
    return [cell.id for cell, _ in found]


def kinds(comparison: Comparison) -> dict[str, ChangeKind]:
    return {each.cell_id: each.kind for each in comparison.cells}


@given(SIDES, SIDES)
def test_nothing_is_lost(then: list[Answered], now: list[Answered]) -> None:
    found = compare(side("base", *then), side("run", *now))

    assert [each.cell_id for each in found.cells] == ids(now)
    assert len(set(found.gone)) == len(found.gone)
    used = {each.base_id for each in found.cells if each.base_id}
    assert not used & set(found.gone)
    # Of those that ask the same under several names, one is enough.
    unnamed = {cell.id for cell, _ in then if cell.id not in used and cell.id not in found.gone}
    asked = {cell.id.split("/")[1] for cell, _ in then if cell.id in used}
    assert {cell_id.split("/")[1] for cell_id in unnamed} <= asked


@given(SIDES)
def test_a_run_held_against_itself_has_neither_regressed_nor_drifted(it: list[Answered]) -> None:
    found = compare(side("run", *it), side("run", *it))

    assert set(kinds(found).values()) <= {
        ChangeKind.UNCHANGED,
        ChangeKind.BROKEN_BEFORE,
        ChangeKind.INFRASTRUCTURE,
    }
    assert found.gone == ()
    assert all(not each.differences for each in found.cells)


MIRRORED = {
    ChangeKind.REGRESSED: ChangeKind.FIXED,
    ChangeKind.FIXED: ChangeKind.REGRESSED,
    ChangeKind.UNCHANGED: ChangeKind.UNCHANGED,
    ChangeKind.DRIFT: ChangeKind.DRIFT,
    ChangeKind.BROKEN_BEFORE: ChangeKind.BROKEN_BEFORE,
}


@given(st.dictionaries(QUESTIONS, st.tuples(REPORTS, REPORTS), max_size=8))
def test_the_other_way_round_it_is_the_other_way_round(
    answers: dict[tuple[str, str, str, str], tuple[ProbeReport | None, ProbeReport | None]],
) -> None:
    then = side("base", *(_answered(q, before) for q, (before, _) in answers.items()))
    now = side("run", *(_answered(q, after) for q, (_, after) in answers.items()))
    there, back = compare(then, now), compare(now, then)

    for forth, again in zip(there.cells, back.cells, strict=True):
        assert forth.base_id == again.cell_id == again.base_id
        if forth.kind in MIRRORED and again.kind in MIRRORED:
            assert again.kind is MIRRORED[forth.kind]
        assert [(d.fact, d.before, d.after) for d in forth.differences] == [
            (d.fact, d.after, d.before) for d in again.differences
        ]


OF_ONE_BUILD = st.dictionaries(QUESTIONS.map(lambda q: (*q[:3], "v0_32")), REPORTS, max_size=6).map(
    lambda found: [_answered(*each) for each in found.items()]
)


@given(OF_ONE_BUILD, OF_ONE_BUILD)
def test_what_is_gone_one_way_has_nothing_to_compare_with_the_other(
    then: list[Answered], now: list[Answered]
) -> None:
    there = compare(side("base", *then), side("run", *now))
    back = compare(side("run", *now), side("base", *then))

    assert set(there.gone) == {each.cell_id for each in back.cells if each.base_id is None}
