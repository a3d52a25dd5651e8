"""vLLM's own selector on emulated cards, held against what others published of its choice."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.truth.asking import BUILD, RELEASE, Answers, answers
from tests.truth.rows import Row, accepted_by, explained, published

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1500)]

MUTATION = Path(__file__).with_name("sm10x-flash-attn-first.diff")
"""FLASH_ATTN and FLASHINFER change places in the list for SM 10.x."""

SM10X = ("b200", "gb200", "b300")
MUTATED_CARDS = (*SM10X, "h100", "rtx_pro_6000", "mi300x")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return published()


@pytest.fixture(scope="module")
def answered(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return answers(rows, tmp_path_factory.mktemp("truth"))


@pytest.fixture(scope="module")
def mutated(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Answers:
    asked = [row for row in rows if row.card in MUTATED_CARDS]
    patched = f"build.{BUILD}.patches=[{MUTATION}]"
    return answers(asked, tmp_path_factory.mktemp("mutated"), patched)


def test_every_difference_is_explained_and_every_explanation_is_of_a_difference(
    rows: list[Row], answered: Answers
) -> None:
    differences = {
        row.id: difference for row in rows if (difference := row.difference(answered[row.id]))
    }

    known = explained()

    unexplained = [f"{name}: {what}" for name, what in differences.items() if name not in known]
    assert unexplained == []
    assert sorted(known.keys() - differences.keys()) == []


def test_of_what_is_published_about_this_release_99_percent_hold(
    rows: list[Row], answered: Answers
) -> None:
    of_release = [row for row in rows if row.version == RELEASE]

    agreeing = [row for row in of_release if row.difference(answered[row.id]) is None]

    assert len(agreeing) / len(of_release) >= 0.99


def test_two_priorities_that_change_places_change_exactly_the_rows_that_they_decide(
    rows: list[Row], answered: Answers, mutated: Answers
) -> None:
    asked = [row for row in rows if row.id in mutated]

    changed = {
        row.id: mutated[row.id]["backend"]
        for row in asked
        if mutated[row.id]["backend"] != answered[row.id]["backend"]
    }

    decided = [row.id for row in asked if is_decided_by_their_order(row, answered[row.id])]
    assert len(decided) > 20
    assert changed == dict.fromkeys(decided, "FLASH_ATTN")


def is_decided_by_their_order(row: Row, answer: Mapping[str, Any]) -> bool:
    """Both could serve, and nothing was asked for. The list is not the one for non-causal layers."""
    return (
        row.card in SM10X
        and "requested" not in row.question
        and not row.question.get("use_non_causal")
        and answer["backend"] == "FLASHINFER"
        and "FLASH_ATTN" in accepted_by(answer)
    )
