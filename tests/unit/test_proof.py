"""Does a run prove its suite's claim?"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest

from orchestrator.asked.config import Expectation, Proof
from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded import matrix
from orchestrator.concluded.gate import Decision, decide
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Demonstration, Standing, is_witness, weigh
from tests.builders import a_cell, a_record

PROOF = Proof(
    claim="it is honoured",
    before="old",
    after="new",
    reverted="undone",
    attempts=("first",),
    cells="*/draft/*",
)
PASSED, FAILED, NOT_RUN = Verdict.PASSED, Verdict.FAILED, Verdict.NOT_RUN
FIXED = {"old": FAILED, "new": PASSED, "undone": FAILED}
"""Of one question: what came with each build."""

Answers = Mapping[str, Verdict]


def a_matrix(questions: Mapping[str, Answers], **categories: str) -> matrix.Matrix:
    """`{"h100/llama/draft": FIXED}`; *categories* are of the cells of a build."""
    verdicts = {f"{q}/{b}": v for q, answers in questions.items() for b, v in answers.items()}
    return matrix.build(
        [*map(a_cell, verdicts)],
        [
            a_record(cell_id, verdict, categories.get(cell_id.rsplit("/", 1)[1]))
            for cell_id, verdict in verdicts.items()
        ],
    )


def demonstration(draft: Answers, proof: Proof = PROOF, **categories: str) -> Demonstration:
    return weigh(a_matrix({"h100/llama/draft": draft}, **categories), proof)


def decided(questions: Mapping[str, Answers], *waivers: Waiver, **categories: str) -> Decision:
    found = a_matrix(questions, **categories)
    return decide(found, Gate(waivers=waivers), today=date(2026, 12, 2), proof=PROOF)


def test_a_fix_is_proven_if_its_check_fails_without_it_and_passes_with_it() -> None:
    found = demonstration(FIXED)

    assert found.sentence() == "proven: it is honoured, on 1 of 1 cards"
    assert found.reasons == ()


@pytest.mark.parametrize("build", ["old", "undone"])
def test_a_check_that_passes_without_the_fix_proves_nothing(build: str) -> None:
    found = demonstration({**FIXED, build: PASSED})

    assert found.sentence() == "not proven: it is honoured, on 0 of 1 cards"
    assert found.reasons == (
        f"h100/llama/draft/{build} passes without the fix: the check is vacuous there",
    )


def test_a_fix_that_does_not_work_is_not_proven_and_says_why() -> None:
    found = demonstration({**FIXED, "new": FAILED})

    assert found.standing is Standing.NOT_PROVEN
    assert found.reasons == ("h100/llama/draft/new fails with the fix: for a reason",)


@pytest.mark.parametrize("build", ["old", "undone"])
@pytest.mark.parametrize("category", ["build_broken", "timeout", "segfault", "internal_error"])
def test_a_build_that_is_broken_or_slow_shows_nothing_of_the_claim(
    build: str, category: str
) -> None:
    found = demonstration(FIXED, PROOF, **{build: category})

    assert found.standing is Standing.INCOMPLETE
    assert found.reasons[0].startswith(
        f"h100/llama/draft/{build} fails for another reason than the claim's, {category}"
    )


def test_a_claim_can_be_about_a_failure_and_then_needs_that_one() -> None:
    proof = replace(PROOF, category="kv_layout_conflict")
    conflict = {"old": "kv_layout_conflict", "undone": "kv_layout_conflict"}

    assert demonstration(FIXED, proof, **conflict).standing is Standing.PROVEN
    assert demonstration(FIXED, proof).standing is Standing.INCOMPLETE


def test_every_card_has_to_show_it() -> None:
    questions = {"h100/llama/draft": FIXED, "mi300x/llama/draft": {**FIXED, "new": FAILED}}
    found = weigh(a_matrix(questions), PROOF)

    assert found.sentence() == "not proven: it is honoured, on 1 of 2 cards"
    assert (found.cards, found.proven_on) == (("h100", "mi300x"), ("h100",))


@pytest.mark.parametrize("build", ["old", "new", "undone"])
def test_a_cell_that_was_not_run_leaves_the_proof_incomplete(build: str) -> None:
    found = demonstration({**FIXED, build: NOT_RUN})

    assert found.standing is Standing.INCOMPLETE
    assert found.reasons == (f"h100/llama/draft/{build} was not run: for a reason",)


def test_a_cell_that_was_not_selected_leaves_the_proof_incomplete() -> None:
    found = demonstration({"old": FAILED, "new": PASSED})

    assert found.standing is Standing.INCOMPLETE
    assert found.reasons == ("h100/llama/draft is not part of the run with undone",)


@pytest.mark.parametrize("category", ["no_space", "gpu_busy"])
def test_a_failure_that_is_not_of_vllm_itself_proves_nothing(category: str) -> None:
    found = demonstration(FIXED, old=category)

    assert found.standing is Standing.INCOMPLETE
    assert found.reasons == (
        f"h100/llama/draft/old says nothing about vLLM ({category}): for a reason",
    )


def test_a_failure_of_vllm_speaks_louder_than_what_is_missing() -> None:
    assert demonstration({**FIXED, "old": NOT_RUN, "new": FAILED}).standing is Standing.NOT_PROVEN


def test_a_claim_without_cells_is_incomplete() -> None:
    found = weigh(a_matrix({"h100/llama/auto": FIXED}), PROOF)

    assert found.sentence() == "incomplete: it is honoured, on 0 of 0 cards"
    assert found.reasons == ("no cell of this run matches */draft/*",)


def test_builds_are_held_against_one_expectation() -> None:
    cells = [a_cell(f"h100/llama/draft/{build}") for build in ("old", "undone")]
    easy = Expectation(outcome=("runs", "refused"))
    cells.append(a_cell("h100/llama/draft/new", expect=easy))
    records = [a_record(cell.id, FIXED[cell.id.rsplit("/", 1)[1]]) for cell in cells]

    assert weigh(matrix.build(cells, records), PROOF).standing is Standing.NOT_PROVEN


def test_a_proof_may_do_without_a_reverted_build() -> None:
    proof = Proof(claim="c", before="old", after="new", cells="*/draft/*")

    assert demonstration({"old": FAILED, "new": PASSED}, proof).standing is Standing.PROVEN


def test_what_the_fix_breaks_is_named_also_outside_of_the_claim() -> None:
    broken = {"old": PASSED, "new": FAILED, "undone": PASSED}
    decision = decided({"h100/llama/draft": FIXED, "h100/llama/auto": broken}, new="timeout")
    found = decision.demonstration

    assert found is not None
    assert found.standing is Standing.PROVEN
    [regression] = found.regressions
    assert (regression.cell_id, regression.passes_with) == ("h100/llama/auto/new", "old")
    assert not decision.ships


def test_what_another_attempt_breaks_is_named_and_blocks_nothing() -> None:
    answers = {**FIXED, "first": FAILED}
    decision = decided({"h100/llama/draft": answers}, first="kv_layout_conflict")

    assert decision.ships
    assert decision.demonstration is not None
    [regression] = decision.demonstration.attempts
    assert (regression.cell_id, regression.category) == (
        "h100/llama/draft/first",
        "kv_layout_conflict",
    )


def test_builds_that_are_there_to_fail_do_not_block() -> None:
    decision = decided({"h100/llama/draft": FIXED})

    assert decision.sentence() == "ships: 1 of 1 cells passed"


def test_a_claim_that_is_not_proven_blocks() -> None:
    decision = decided({"h100/llama/draft": {**FIXED, "old": PASSED}})

    assert decision.sentence() == "blocked: the claim is not proven"


def test_a_waived_regression_still_blocks() -> None:
    broken = {"old": PASSED, "new": FAILED, "undone": PASSED}
    waiver = Waiver(cells="*/auto/*", category="timeout", reason="known", owner="me")
    questions = {"h100/llama/draft": FIXED, "h100/llama/auto": broken}
    decision = decided(questions, waiver, new="timeout")

    assert decision.sentence() == "blocked: 1 regressed with the fix"


def test_a_witness_that_was_not_run_blocks() -> None:
    assert not decided({"h100/llama/draft": {**FIXED, "first": NOT_RUN}}).ships


def test_without_a_proof_no_build_is_there_to_fail() -> None:
    assert not is_witness(a_cell("h100/llama/draft/old"), None)
    assert not is_witness(a_cell("h100/llama/draft/new"), PROOF)
    assert is_witness(a_cell("h100/llama/draft/old"), PROOF)
