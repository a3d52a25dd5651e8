"""The same suite with an interpreter of its own for every cell: slow, and the yardstick."""

import json

import pytest

from tests.ray.conftest import StartDriver

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.timeout(3600)]


def test_cold_cells_come_to_the_same_verdicts_as_warm_ones(drive: StartDriver) -> None:
    answers = {}
    for isolation in ("warm", "cold"):
        driver = drive("suite=demo", f"isolation={isolation}", "resume=false")
        driver.patience_s = 1500
        assert driver.wait() == 0
        assert driver.left() == []
        newest = max(driver.folder.glob("runs/*"), key=lambda run: run.stat().st_mtime)
        report = json.loads((newest / "summary.json").read_text())
        answers[isolation] = {
            cell["id"]: (cell["verdict"], cell["category"], cell["requests"], cell["target"])
            for cell in report["cells"]
        }

    assert answers["warm"] == answers["cold"]
