"""May it ship? What blocks, what a policy lets pass, and how much may be missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked
from orchestrator.asked.policies import ConcernKind, Gate, Limits, OfACell, Waiver
from orchestrator.concluded import comparison, matrix
from orchestrator.concluded.comparison import Side
from orchestrator.concluded.gate import Decision, decide
from orchestrator.concluded.judge import Verdict, judge
from orchestrator.concluded.record import Record
from tests.builders import (
    EAGLE3,
    H100,
    a_build,
    a_cell,
    a_record,
    a_report,
    an_attempt,
    an_emulated_cell,
    groups,
)

CELL = a_cell()
TODAY = date(2026, 12, 2)
FAILED, NOT_RUN, PASSED = Verdict.FAILED, Verdict.NOT_RUN, Verdict.PASSED
RELEASE = Gate(tolerates=("broken before", "flaky", "drift", "no baseline"))


def decision(record: Record | None, *waivers: Waiver, **gate: object) -> Decision:
    result = matrix.build([CELL], [record] if record else [])
    return decide(result, Gate(waivers=waivers, **gate), today=TODAY)  # type: ignore[arg-type]


def of_cards(verdicts: Mapping[str, Sequence[Verdict]], gate: Gate) -> Decision:
    """`{"h100": [PASSED, NOT_RUN]}`"""
    records = [
        a_record(f"{card}/llama{number}/auto/v0_32", verdict)
        for card, of_card in verdicts.items()
        for number, verdict in enumerate(of_card)
    ]
    cells = [a_cell(record.cell_id) for record in records]
    return decide(matrix.build(cells, records), gate, today=TODAY)


def since(before: Record | None, after: Record | None, gate: Gate) -> Decision:
    then = Side(name="base", matrix=matrix.build([CELL], [before] if before else []))
    now = Side(name="run", matrix=matrix.build([CELL], [after] if after else []))
    compared = comparison.compare(then, now)
    return decide(now.matrix, gate, today=TODAY, comparison=compared)


def ran(backend: str, verdict: Verdict = PASSED, version: str = "0.32.0") -> Record:
    return a_record(
        verdict=verdict,
        outcome="runs",
        category="silent_fallback" if verdict is FAILED else None,
        attempt=an_attempt(a_report(target=groups(backend))),
        build=a_build(vllm_version=version),
    )


@pytest.mark.parametrize("verdict", [FAILED, NOT_RUN])
def test_anything_but_a_pass_blocks_the_release(verdict: Verdict) -> None:
    assert not decision(a_record(verdict=verdict)).ships


def test_a_cell_without_a_record_blocks_the_release() -> None:
    blocked = decision(None)

    assert blocked.sentence() == "blocked: 1 not run of 1 cells"
    assert blocked.blockers[0].reason == "there is no record of it"


def test_all_passed_ships() -> None:
    assert decision(a_record()).sentence() == "ships: 1 of 1 cells passed"


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (ConcernKind.REGRESSED, ran("A"), ran("A", FAILED)),
        (ConcernKind.BROKEN_BEFORE, ran("A", FAILED), ran("A", FAILED)),
        (ConcernKind.FAILED, None, ran("A", FAILED)),
        (ConcernKind.DRIFT, ran("A"), ran("B")),
        (ConcernKind.NO_BASELINE, None, ran("A")),
        (ConcernKind.NOT_RUN, ran("A"), None),
        (ConcernKind.INFRASTRUCTURE, ran("A"), a_record(verdict=FAILED, category="no_space")),
        (
            ConcernKind.FLAKY,
            ran("A"),
            replace(ran("A"), earlier=("segfault: SIGSEGV in libcuda",)),
        ),
    ],
)
def test_every_kind_of_trouble_blocks_unless_it_is_tolerated(
    kind: ConcernKind, before: Record | None, after: Record | None
) -> None:
    [blocker] = since(before, after, Gate()).blockers
    assert blocker.kind is kind

    lenient = Gate(tolerates=get_args(OfACell), max_not_run=None)
    decided = since(before, after, lenient)
    assert decided.ships
    assert [each.kind for each in decided.tolerated] == [kind]


@pytest.mark.parametrize(("before", "after"), [(ran("A"), ran("A")), (ran("A", FAILED), ran("A"))])
def test_what_is_unchanged_or_fixed_is_no_concern(before: Record, after: Record) -> None:
    decided = since(before, after, Gate())

    assert decided.ships
    assert not decided.tolerated


def test_a_failure_that_comes_and_goes_is_no_pass_for_who_tolerates_flaky_cells() -> None:
    before = replace(ran("A"), digest="same")
    after = replace(ran("A", FAILED), digest="same")

    assert not since(before, after, Gate(tolerates=("flaky",))).ships


def test_a_cell_that_was_broken_and_lost_another_request_has_regressed() -> None:
    def answered(target: str, draft: str) -> Record:

        cell = a_cell(
            target=Asked(attention_backend="T"),
            draft=Asked(attention_backend="D"),
            speculative=EAGLE3,
        )
        attempt = an_attempt(a_report(target=groups(target), draft=groups(draft)))
        judgement = judge(cell, a_build(), attempt)
        return Record(cell_id=cell.id, build=a_build(), attempt=attempt, judgement=judgement)

    decided = since(answered("T", "X"), answered("X", "X"), RELEASE)

    [blocker] = decided.blockers
    assert blocker.kind is ConcernKind.REGRESSED
    assert blocker.reason == ("target.attention_backend was honoured, now dropped: asked T, got X")


def test_a_cell_that_nobody_asks_any_more_blocks_unless_it_is_tolerated() -> None:
    other = a_cell("cpu/gemma/auto/v0_32", target=None, dtype="float16")
    base = Side(name="base", matrix=matrix.build([CELL, other], [ran("A")]))
    run = Side(name="run", matrix=matrix.build([CELL], [ran("A")]))
    compared = comparison.compare(base, run)

    blocked = decide(run.matrix, RELEASE, today=TODAY, comparison=compared)
    tolerant = replace(RELEASE, tolerates=("gone",))

    assert blocked.sentence() == "blocked: 1 cell gone"
    assert decide(run.matrix, tolerant, today=TODAY, comparison=compared).ships


def test_a_baseline_that_asks_nothing_alike_blocks_whatever_is_tolerated() -> None:
    other = a_cell("cpu/gemma/auto/v0_32", dtype="float16")
    base = Side(name="base", matrix=matrix.build([other], [a_record(other.id)]))
    run = Side(name="run", matrix=matrix.build([CELL], [ran("A")]))
    everything = Gate(tolerates=get_args(OfACell))

    decided = decide(run.matrix, everything, today=TODAY, comparison=comparison.compare(base, run))

    assert decided.sentence() == "blocked: run asks nothing that base does"


def test_a_baseline_that_cannot_be_used_blocks() -> None:
    result = matrix.build([CELL], [ran("A")])

    decided = decide(result, RELEASE, today=TODAY, unusable="there is no run last-night")

    assert decided.sentence() == "blocked: there is no run last-night"


# How much may be missing


@pytest.mark.parametrize(("allowed", "ships"), [(0, False), (1, False), (2, True), (None, True)])
def test_a_policy_says_how_many_cells_may_be_missing(allowed: int | None, ships: bool) -> None:
    decided = of_cards({"h100": [PASSED, NOT_RUN, NOT_RUN]}, Gate(max_not_run=allowed))

    assert decided.ships is ships
    assert len(decided.tolerated) == (2 if ships else 0)


@pytest.mark.parametrize(
    ("of_mi300x", "ships"),
    [([NOT_RUN, NOT_RUN], True), ([NOT_RUN] * 3, False), ([FAILED], False)],
)
def test_a_card_with_limits_of_its_own_is_not_counted_with_the_run(
    of_mi300x: list[Verdict], ships: bool
) -> None:
    gate = Gate(max_not_run=0, per_card={"mi300x": Limits(max_not_run=2)})

    assert of_cards({"h100": [PASSED], "mi300x": of_mi300x}, gate).ships is ships


def test_the_cells_of_other_cards_keep_the_limit_of_the_run() -> None:
    gate = Gate(max_not_run=1, per_card={"mi300x": Limits(max_not_run=None, min_coverage=0)})

    assert not of_cards({"h100": [NOT_RUN], "b200": [NOT_RUN], "mi300x": [PASSED]}, gate).ships


def test_a_name_means_the_card_emulated_or_not_and_the_last_glob_counts() -> None:
    gate = Gate(per_card={"*": Limits(max_not_run=5), "mi300x": Limits(max_not_run=0)})

    assert of_cards({"h100-emulated": [NOT_RUN, PASSED]}, gate).ships
    assert not of_cards({"mi300x-emulated": [NOT_RUN, PASSED]}, gate).ships


def test_too_little_that_says_anything_about_vllm_blocks_although_it_is_tolerated() -> None:
    gate = Gate(min_coverage=0.75, max_not_run=None)

    assert of_cards({"h100": [PASSED, PASSED, PASSED, NOT_RUN]}, gate).ships
    assert of_cards({"h100": [PASSED, PASSED, NOT_RUN, NOT_RUN]}, gate).sentence() == (
        "blocked: 2 of 4 cells of the run say something about vLLM, and 75 % have to"
    )


def test_coverage_can_be_asked_of_each_card() -> None:
    gate = Gate(max_not_run=None, per_card={"*": Limits(min_coverage=0.5)})

    assert of_cards({"h100": [PASSED] * 9, "mi300x": [NOT_RUN]}, gate).sentence() == (
        "blocked: 0 of 1 cells of mi300x say something about vLLM, and 50 % have to"
    )


def test_a_failure_of_the_cluster_says_nothing_and_a_waived_one_is_known() -> None:
    record = a_record(verdict=FAILED, category="no_space")
    full = {"min_coverage": 1.0, "tolerates": ("infrastructure",)}
    waiver = Waiver(cells="*", category="no_space", reason="known", owner="me")

    assert decision(record, **full).sentence() == (
        "blocked: 0 of 1 cells of the run say something about vLLM, and 100 % have to"
    )
    assert decision(record, waiver, **full).ships


VERDICTS = st.dictionaries(
    st.sampled_from(["h100", "b200", "mi300x"]),
    st.lists(st.sampled_from(Verdict), min_size=1, max_size=6),
    min_size=1,
)
LIMITS = st.builds(
    Limits,
    min_coverage=st.none() | st.floats(0, 1),
    max_not_run=st.none() | st.integers(0, 4),
)
GATES = st.builds(
    Gate,
    tolerates=st.lists(st.sampled_from(get_args(OfACell))).map(tuple),
    min_coverage=st.floats(0, 1),
    max_not_run=st.none() | st.integers(0, 8),
    per_card=st.dictionaries(st.sampled_from(["*", "h100", "mi*"]), LIMITS),
)


@given(VERDICTS, GATES)
def test_whatever_the_policy_nothing_is_lost_and_nothing_is_told_twice(
    verdicts: dict[str, list[Verdict]], gate: Gate
) -> None:
    decided = of_cards(verdicts, gate)
    told = [*decided.blockers, *decided.tolerated]

    of_cells = [each.cell_id for each in told if each.cell_id]
    assert len(of_cells) == len(set(of_cells))
    assert len(of_cells) == sum(
        verdict is not PASSED for of_card in verdicts.values() for verdict in of_card
    )
    assert decided.ships is (not decided.blockers)
    assert decided.sentence().startswith("ships: " if decided.ships else "blocked: ")


@given(VERDICTS, GATES, GATES)
def test_a_policy_that_asks_more_ships_no_more(
    verdicts: dict[str, list[Verdict]], gate: Gate, other: Gate
) -> None:
    stricter = Gate(
        tolerates=tuple(set(gate.tolerates) & set(other.tolerates)),
        min_coverage=max(gate.min_coverage, other.min_coverage),
        max_not_run=min(gate.max_not_run or 0, other.max_not_run or 0),
    )
    lenient = replace(gate, per_card={})

    if of_cards(verdicts, stricter).ships:
        assert of_cards(verdicts, lenient).ships


# The sentence


def on(card: Cell, before: Verdict, after: Verdict, category: str | None) -> tuple[Record, Record]:
    def record(verdict: Verdict, version: str) -> Record:
        return a_record(
            card.id,
            verdict,
            category if verdict is FAILED else None,
            "runs",
            attempt=an_attempt(a_report(), cell_id=card.id),
            build=a_build(vllm_version=version),
        )

    return record(before, "0.31.0"), record(after, "0.32.0")


def sentence(*changes: tuple[str, str, Verdict, Verdict, str | None]) -> str:
    """Card, arch, before, after and category of each cell, with one model each."""
    cells, then, now = [], [], []
    for number, (card, arch, before, after, category) in enumerate(changes):
        hardware = replace(H100, card=card, arch=arch)
        cell = a_cell(f"{card}/llama{number}/auto/v0_32", hardware=hardware, dtype=str(number))
        old, new = on(cell, before, after, category)
        cells.append(cell)
        then.append(old)
        now.append(new)
    base = Side(name="base", matrix=matrix.build(cells, then))
    run = Side(name="run", matrix=matrix.build(cells, now))
    compared = comparison.compare(base, run)
    return decide(run.matrix, RELEASE, today=TODAY, comparison=compared).sentence()


MI, NV = ("mi300x", "gfx942"), ("h100", "sm_90")
CONFLICT, OTHER = "kv_layout_conflict", "timeout"
FINE = (PASSED, PASSED, None)


def test_one_sentence_says_what_where_why_and_since_when() -> None:
    assert (
        sentence(
            (*MI, PASSED, FAILED, CONFLICT),
            (*MI, PASSED, FAILED, CONFLICT),
            (*MI, PASSED, FAILED, CONFLICT),
            (*NV, *FINE),
        )
        == "blocked: 3 regressions on gfx942, all kv_layout_conflict, since 0.32.0"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [(*MI, PASSED, FAILED, CONFLICT)],
            "blocked: 1 regression, kv_layout_conflict, since 0.32.0",
        ),
        (
            [
                (*MI, PASSED, FAILED, CONFLICT),
                (*MI, PASSED, FAILED, OTHER),
                (*NV, PASSED, FAILED, OTHER),
                ("b200", "sm_100", *FINE),
            ],
            "blocked: 3 regressions on gfx942 and sm_90, 2 timeout, 1 kv_layout_conflict, since 0.32.0",
        ),
        (
            [(*MI, FAILED, PASSED, OTHER), (*NV, FAILED, FAILED, OTHER), (*NV, *FINE)],
            "ships: 2 of 3 cells passed, 1 fixed; tolerated: 1 broken before",
        ),
        (
            [(*MI, PASSED, FAILED, "no_space"), (*MI, PASSED, NOT_RUN, None), (*NV, *FINE)],
            "blocked: 1 failed on gfx942 (no_space) and 1 not run on gfx942 of 3 cells",
        ),
    ],
)
def test_the_sentence_names_what_is_alike_and_counts_the_rest(
    changes: list[tuple[str, str, Verdict, Verdict, str | None]], said: str
) -> None:
    assert sentence(*changes) == said


def test_an_emulated_card_is_never_called_a_card() -> None:
    cells = [an_emulated_cell(), a_cell()]
    records = [a_record(cells[0].id, FAILED, OTHER), a_record(cells[1].id)]
    decided = decide(matrix.build(cells, records), RELEASE, today=TODAY)

    assert decided.sentence() == "blocked: 1 failed on emulated sm_90 (timeout) of 2 cells"
