"""The ways onto a cluster from elsewhere: the same matrix, the same exit code, nothing lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from orchestrator.errors import BLOCKED, SHIPS, ClusterError, ConfigError, StoppedError
from orchestrator.remote.jobs_api import JobsApi
from tests.ray.conftest import StartDriver
from tests.ray.driver import Driver
from tests.ray.mixed_cluster import MixedCluster
from tests.ray.node_kinds import NodeKind

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(400)]

WORDS = (
    "engine_mode=emulated",
    "suite.check=init",
    "hardware=[h100]",
    "model=[llama31_8b]",
    "backend=[auto]",
    "build=[v0_32_gpu]",
)
BLOCKS = "suite.expectations=[{cells: '*', expect: {outcome: [refused]}}]"
CELL = "h100-emulated/llama31_8b/auto/v0_32_gpu"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    home = tmp_path_factory.mktemp("home")
    head = NodeKind(name="head", labels={"vm.cpu": "yes"}, cpus=2, memory_gib=6.0)
    cache = Path("~/.cache/vllm-matrix").expanduser()
    there = {"HOME": str(home), "VLLM_MATRIX_CACHE": str(cache)}
    with MixedCluster([head], environment=there, takes_jobs=True) as cluster:
        yield cluster
    assert not cluster.left()


def submit(drive: StartDriver, cluster: MixedCluster, *words: str, folder: Path) -> Driver:
    command = ("submit", "--address", cluster.jobs_url, *WORDS, *words)
    return drive(*command, folder=folder, environment=cluster.environment())


def seen(driver: Driver) -> dict[str, tuple[str, str]]:
    """What the records say, but for times and places."""
    return {
        cell_id: (
            record["judgement"]["verdict"],
            record["attempt"]["report"]["target"][0]["backend"],
        )
        for cell_id, record in driver.records().items()
    }


def test_the_same_matrix_comes_back_by_each_of_the_ways(
    cluster: MixedCluster, drive: StartDriver, tmp_path: Path
) -> None:
    plain = drive(
        *WORDS,
        f"cluster.address={cluster.address}",
        folder=tmp_path / "plain",
        environment=cluster.environment(),
    )
    assert plain.wait() == SHIPS, plain.output
    laptop = submit(drive, cluster, "resume=false", folder=tmp_path / "laptop")
    assert laptop.wait() == SHIPS, laptop.output
    job = _ray_job_submit(cluster, tmp_path / "job")

    assert seen(plain) == seen(laptop) == job == {CELL: ("passed", "FLASH_ATTN")}
    assert f"1/1 passed {CELL}" in " ".join(laptop.output.split())
    [run] = (tmp_path / "laptop" / "runs").glob("20*")
    assert (run / "matrix.md").exists()
    assert (run / "cells" / CELL / "1" / "probe.log").exists()


def _ray_job_submit(cluster: MixedCluster, runs: Path) -> dict[str, tuple[str, str]]:
    command = [
        *(str(Path(sys.executable).parent / "ray"), "job", "submit"),
        f"--address={cluster.jobs_url}",
        f"--working-dir={_checkout(runs.parent)}",
        *("--", "python", "-m", "orchestrator", *WORDS, f"runs={runs}"),
    ]
    ended = subprocess.run(
        command, env=cluster.environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [file] = runs.glob("*/records.jsonl")
    records: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    return {
        record["cell_id"]: (
            record["judgement"]["verdict"],
            record["attempt"]["report"]["target"][0]["backend"],
        )
        for record in records
    }


def _checkout(folder: Path) -> Path:
    """What a clone of this project has, without what tests make beside it."""
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("orchestrator", "jobs", "conf", "hydra_plugins"):
        (checkout / name).symlink_to(ROOT / name)
    return checkout


def test_the_gates_own_exit_code_comes_back(
    cluster: MixedCluster, drive: StartDriver, tmp_path: Path
) -> None:
    driver = submit(drive, cluster, BLOCKS, folder=tmp_path)

    assert driver.wait() == BLOCKED, driver.output
    assert "blocked" in driver.output


def test_a_laptop_that_is_killed_comes_back_to_all_of_it(
    cluster: MixedCluster, drive: StartDriver, tmp_path: Path
) -> None:
    driver = submit(drive, cluster, "resume=false", folder=tmp_path)
    driver.wait_for("submitted as")
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()

    again = drive("attach", folder=tmp_path, environment=cluster.environment())

    assert again.wait() == SHIPS, again.output
    assert seen(again) == {CELL: ("passed", "FLASH_ATTN")}


def test_a_run_that_is_stopped_from_here_has_the_time_to_come_home(
    cluster: MixedCluster, drive: StartDriver, tmp_path: Path
) -> None:
    words = ("cluster.on_interrupt=stop", "resume=false")
    driver = submit(drive, cluster, *words, folder=tmp_path)
    driver.wait_for("reused")

    driver.process.send_signal(signal.SIGINT)

    assert driver.wait() == StoppedError.exit_code, driver.output
    [received] = (tmp_path / "runs" / ".received").glob("*.json")
    assert json.loads(received.read_text())["is_complete"]
    assert "not all of the run" not in driver.output


def test_nothing_is_submitted_that_cannot_make_sense(
    cluster: MixedCluster, drive: StartDriver, tmp_path: Path
) -> None:
    driver = submit(drive, cluster, "modle=[x]", "deadline_s=soon", folder=tmp_path)

    assert driver.wait() == ConfigError.exit_code
    assert "modle" in driver.output
    assert "deadline_s" in driver.output
    assert not (tmp_path / "runs").exists()


class Hesitant(BaseHTTPRequestHandler):
    """In front of a dashboard: it takes the first job, and answers too late to be heard."""

    there: str
    submitted: int

    def do_GET(self) -> None:
        self._pass_on()

    do_PUT = do_POST = do_GET  # noqa: N815  the names are the library's

    def log_message(self, *_: object) -> None:
        pass

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        got = requests.request(
            self.command, self.there + self.path, data=body, headers=dict(self.headers), timeout=60
        )
        status, content = got.status_code, got.content
        if (self.command, self.path) == ("POST", "/api/jobs/"):
            type(self).submitted += 1
            if self.submitted == 1:
                status, content = 500, b"No available agent to submit job, please try again later."
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content)


def test_a_job_is_submitted_once_also_to_a_cluster_that_answers_too_late(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    Hesitant.there, Hesitant.submitted = cluster.jobs_url, 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Hesitant) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        api = JobsApi(f"http://127.0.0.1:{server.server_port}")
        submission = api.submit("echo once", tmp_path, {})
        server.shutdown()

    assert Hesitant.submitted == 2
    jobs = requests.get(f"{cluster.jobs_url}/api/jobs/", timeout=20).json()
    echoes = [job["submission_id"] for job in jobs if job["entrypoint"] == "echo once"]
    assert echoes == [submission]


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("10.0.0.1:8265", ConfigError.exit_code, "such as http://10.0.0.1:8265"),
        ("http://127.0.0.1:9", ClusterError.exit_code, "nothing answers at http://127.0.0.1:9"),
    ],
)
def test_a_wrong_address_is_one_message(
    address: str, code: int, said: str, drive: StartDriver, tmp_path: Path
) -> None:
    driver = drive("submit", "--address", address, *WORDS, folder=tmp_path)

    assert driver.wait() == code
    assert said in driver.output
    assert "Traceback" not in driver.output


def test_a_cluster_with_a_token_says_what_is_missing(drive: StartDriver, tmp_path: Path) -> None:
    head = NodeKind(name="head")
    locked = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "of-the-cluster"}
    with MixedCluster([head], environment=locked, takes_jobs=True) as cluster:
        for ours in ({"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "not-the-clusters"}):
            environment = {**cluster.environment(), **ours}
            words = ("submit", "--address", cluster.jobs_url, *WORDS)
            driver = drive(*words, folder=tmp_path, environment=environment)

            assert driver.wait() == ClusterError.exit_code
            assert "lets in only those who have its token" in " ".join(driver.output.split())
            assert "Traceback" not in driver.output


def test_a_secret_is_not_put_where_everybody_can_read_it(
    cluster: MixedCluster, drive: StartDriver, tmp_path: Path
) -> None:
    word = "model.llama31_8b.env.HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789"

    driver = submit(drive, cluster, word, folder=tmp_path)

    assert driver.wait() == ConfigError.exit_code
    assert "everybody who sees the cluster's dashboard" in driver.output
    assert "hf_abc" not in driver.output
