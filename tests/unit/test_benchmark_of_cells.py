"""What `python -m benchmarks.cells` makes of the seconds that it measured."""

import pytest

from benchmarks.cells import figures

REAL = {
    "host": [12.5],
    "warm": [0.5, 9.0, 0.4],
    "cold": [12.0, 10.0, 11.0],
    "alone": [10.5, 10.5, 60.0],
    "plain": [36.1234, 30.0, 40.0],
}
EMULATED = {"host": [20.0], "warm": [0.25, 0.25, 5.0], "cold": [10.0, 12.0, 14.0]}


def test_each_way_has_its_median_and_cold_is_compared_with_warm() -> None:
    assert figures(REAL, EMULATED) == {
        "cold_s": 11.0,
        "warm_s": 0.5,
        "alone_s": 10.5,
        "plain_s": 36.123,
        "ratio": 22.0,
        "alone_ratio": 21.0,
        "host_s": 12.0,
        "pays_after": 2,
        "emulated_cold_s": 12.0,
        "emulated_warm_s": 0.25,
        "emulated_ratio": 48.0,
    }


def test_the_ratio_is_of_medians_before_they_are_rounded() -> None:
    seconds = {**REAL, "warm": [0.3004], "cold": [10.0]}

    assert figures(seconds, EMULATED)["warm_s"] == 0.3
    assert figures(seconds, EMULATED)["ratio"] == 33.3
    assert figures(REAL, {"warm": [0.0444], "cold": [10.0]})["emulated_ratio"] == 225.2


@pytest.mark.parametrize(
    ("first_s", "cells"), [(5.4, 1), (10.5, 1), (10.6, 2), (30.5, 3), (30.6, 4)]
)
def test_a_host_pays_once_its_start_took_no_longer_than_cells_without_one(
    first_s: float, cells: int
) -> None:
    """Each of them takes ten seconds more than a warm one, which is the half second of the first."""
    assert figures({**REAL, "host": [first_s]}, EMULATED)["pays_after"] == cells
