"""A node that does not see the run's folder, as nodes of a cluster mostly don't."""

import json
from pathlib import Path

import pytest

from jobs.node import caches
from tests.ray.conftest import StartDriver
from tests.ray.driver import GO, HANG
from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import NodeKind
from tests.ray.small_disk import small_disk

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(300)]

CELL = "cpu/gemma3/auto/v0_32_strict_cpu"
WORDS = (
    "hardware=[cpu]",
    "model=[gemma3]",
    "backend=[auto]",
    "build=[v0_32_strict_cpu]",
    f"build.v0_32_strict_cpu.patches=[{HANG}]",
)


def test_its_cells_are_watched_from_afar_and_their_files_come_home(
    tmp_path: Path, drive: StartDriver
) -> None:
    with small_disk(tmp_path / "runs", "size=64m") as elsewhere:
        far = NodeKind(
            name="far",
            labels={"vm.cpu": "yes"},
            memory_gib=4.0,
            environment={GO: str(tmp_path / "go")},
            prefix=elsewhere.prefix,
        )
        with MixedCluster([NodeKind(name="head", cpus=0), far]) as cluster:
            address = f"cluster.address={cluster.address}"
            driver = drive(*WORDS, address, environment=cluster.environment())
            driver.until(lambda: _phase(tmp_path) == "load", "its phase is not seen")
            driver.go()

            assert driver.wait() == 0, driver.output
            [record] = driver.records().values()
            log = Path(record["attempt"]["log"])
            assert log.is_relative_to(tmp_path / "runs")
            assert log.read_text()
            report = json.loads((log.parent / "report.json").read_text())
            assert report["cell_id"] == CELL
            assert record["attempt"]["placement"]["labels"]["ray.io/node-id"]
            assert not [*elsewhere.inside.iterdir()]
            assert not [*caches.folder(caches.USUAL).glob("away/*")]
        assert not cluster.left()


def _phase(folder: Path) -> str | None:
    for file in folder.glob(f"runs/*/cells/{CELL}/1/phase.json"):
        return str(json.loads(file.read_text())["phase"])
    return None
