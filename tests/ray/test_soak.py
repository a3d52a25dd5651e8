"""500 cells, and faults at random: nothing is lost, doubled, or left."""

import os
import random
import sys
from pathlib import Path

import pytest

from tests.ray.soak import Soak, asked, growth, verdicts

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(3600)]

SEED = int(os.environ.get("MATRIX_SOAK_SEED", random.randrange(10**6)))
CELLS = int(os.environ.get("MATRIX_SOAK_CELLS", "500"))
FAULTS = int(os.environ.get("MATRIX_SOAK_FAULTS", "60"))


def test_a_soak_ends_with_one_terminal_record_per_cell_and_nothing_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soak = Soak(folder=tmp_path, seed=SEED, cells=CELLS, faults=FAULTS)
    with capsys.disabled():
        sys.stdout.write(f"\nMATRIX_SOAK_SEED={SEED}\n")
        try:
            soak.run()
        finally:
            soak.end()
            sys.stdout.write(soak.summary())

    for driver in soak.drivers():
        assert asked(driver) == verdicts(driver).keys(), "lost"
        assert {*verdicts(driver).values()} == {1}, "doubled"
    assert soak.left == []
    for kind, limit_mib in (("driver", 25), ("host", 25)):
        assert growth(soak.lives[kind], lambda life: life.growth_mib()) < limit_mib
        assert growth(soak.lives[kind], lambda life: life.growth_descriptors()) < 5
