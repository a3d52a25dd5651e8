"""
deploy/slurm/vllm-matrix.sbatch under a Slurm of our own: two nodes, each an address of a network
that only they are in. What real Slurm does to devices and to steps is not seen here.
"""

import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.ray import marked
from tests.ray.driver import GO, HANG, TOKEN

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy/slurm/vllm-matrix.sbatch"
IN_A_NETWORK_OF_ITS_OWN = ("unshare", "--map-root-user", "--net", "sh", "-c")

SCONTROL = """\
#!/usr/bin/env bash
[ "$*" = "show hostnames two-nodes" ] && printf '%s\\n' 127.0.0.2 127.0.0.3
"""

SRUN = """\
#!/usr/bin/env bash
# One task on one node, whose processes share ports and cores with those of the other node.
while [[ $1 == --* ]]; do
  case $1 in
    --nodelist=127.0.0.3) export ROCR_VISIBLE_DEVICES=0 ;;
  esac
  shift
done
exec "$@" --num-cpus=1 --object-store-memory=83886080 \\
  --min-worker-port=0 --max-worker-port=0 --dashboard-agent-listen-port=0
"""

PASSING = ("hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]")
HANGING = (
    "hardware=[cpu]",
    "model=[gemma3]",
    "backend=[auto]",
    "build=[v0_32_strict_cpu]",
    f"build.v0_32_strict_cpu.patches=[{HANG}]",
)


@dataclass(kw_only=True)
class Job:
    """What `sbatch SCRIPT WORDS` would start on the first node."""

    folder: Path
    words: tuple[str, ...]
    ray: Path
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self) -> "Job":
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *IN_A_NETWORK_OF_ITS_OWN,
                    'ip link set lo up && exec bash "$0" "$@"',
                    *(str(SCRIPT), *self.words, f"runs={self.folder / 'runs'}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
                    "SLURM_SUBMIT_DIR": str(ROOT),
                    "SLURM_JOB_NODELIST": "two-nodes",
                    "SLURM_JOB_ID": "4711",
                    "RAY_TMPDIR": str(self.ray),
                    GO: str(self.folder / "go"),
                    TOKEN: self.token,
                },
                start_new_session=True,
            )
        return self

    @property
    def _log(self) -> Path:
        return self.folder / "job.log"

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self) -> int:
        return self.process.wait(timeout=200)

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + 150
        while not condition():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < end, self.output
            time.sleep(0.1)

    def processes(self, *more: str) -> list[int]:
        return marked.carrying(f"{TOKEN}={self.token}", *more)

    def left(self) -> list[str]:
        end = time.monotonic() + 5
        while self.processes() and time.monotonic() < end:
            time.sleep(0.1)
        return [marked.command(pid) for pid in self.processes()]


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []
    for name, text in (("scontrol", SCONTROL), ("srun", SRUN)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    # Ray's sockets lie in it, whose paths have to be short.
    with tempfile.TemporaryDirectory(prefix="matrix-", ignore_cleanup_errors=True) as ray:

        def start(*words: str) -> Job:
            jobs.append(Job(folder=tmp_path, words=words, ray=Path(ray)))
            return jobs[-1].start()

        yield start
        for job in jobs:
            marked.send(signal.SIGKILL, *job.processes())
            job.process.wait()


def test_a_job_has_the_exit_code_of_its_run_and_leaves_nothing_on_its_nodes(
    submit: Callable[..., Job],
) -> None:
    job = submit(*PASSING)
    job.until(lambda: job.processes("HIP_VISIBLE_DEVICES=0"))

    assert not job.processes("ROCR_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=0")
    assert job.wait() == 0, job.output
    assert "gate ships: 1 of 1 cells passed" in job.output
    assert job.left() == []


def test_a_job_whose_time_is_up_ends_in_good_order(submit: Callable[..., Job]) -> None:
    job = submit(*HANGING)
    job.until(lambda: [*job.folder.glob("runs/*/cells/**/phase.json")])

    os.kill(job.process.pid, signal.SIGTERM)

    assert job.wait() == 130, job.output
    assert "the same command goes on from there" in job.output
    assert job.left() == []


def test_the_token_is_on_no_command_line(submit: Callable[..., Job]) -> None:
    job = submit(*HANGING)
    job.until(lambda: [*job.folder.glob("runs/*/cells/**/phase.json")])
    environment = Path(f"/proc/{job.processes('RAY_AUTH_MODE=token')[0]}/environ").read_bytes()
    [token] = [
        pair.split(b"=", 1)[1].decode()
        for pair in environment.split(b"\0")
        if pair.startswith(b"RAY_AUTH_TOKEN=")
    ]

    assert len(token) == 64
    assert not [pid for pid in job.processes() if token in marked.command(pid)]
    assert token not in job.output
