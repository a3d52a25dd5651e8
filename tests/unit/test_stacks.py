"""Where a cell was that did not end in time: of all its processes, the one that the others wait for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.node import stacks
from tests.unit.standin import a_request, run

DOWNLOADS = ("httpcore/_backends/sync.py:128 read", "huggingface_hub/file_download.py:9 get")
AWAITS_A_WORKER = (
    "selectors.py:415 select",
    "multiprocessing/connection.py:947 wait",
    "vllm/v1/executor/multiproc_executor.py:9 wait_for_ready",
)
IS_IDLE = ("vllm/distributed/device_communicators/shm_broadcast.py:7 acquire_read",)
AWAITS_A_COMPILER = ("subprocess.py:2053 _wait", "torch/_inductor/cpp_builder.py:5 build")
IS_NO_PYTHON: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        ([AWAITS_A_WORKER, DOWNLOADS], DOWNLOADS),
        ([AWAITS_A_WORKER, IS_NO_PYTHON, IS_IDLE, DOWNLOADS], DOWNLOADS),
        ([DOWNLOADS, IS_IDLE], DOWNLOADS),
        ([AWAITS_A_WORKER, AWAITS_A_COMPILER, IS_NO_PYTHON], AWAITS_A_COMPILER),
        ([AWAITS_A_WORKER], AWAITS_A_WORKER),
        ([IS_NO_PYTHON], ()),
    ],
)
def test_the_cause_is_the_process_that_waits_for_no_other(
    seen: list[tuple[str, ...]], cause: tuple[str, ...]
) -> None:
    assert stacks.of_the_cause(seen) == cause


@pytest.mark.usefixtures("no_host_stays")
def test_a_cell_that_waits_for_a_worker_shows_where_that_hangs(tmp_path: Path) -> None:
    code = """
        import multiprocessing
        def hangs_in_the_worker(pipe): time.sleep(600)
        ours, theirs = multiprocessing.Pipe()
        fork = multiprocessing.get_context("fork")
        fork.Process(target=hangs_in_the_worker, args=(theirs,)).start()
        ours.recv()
    """
    attempt = run(a_request(tmp_path, code, deadline_s=1.0))

    assert attempt["exit"]["timed_out"] == "attempt"
    assert attempt["waiting"][0].endswith(" hangs_in_the_worker")


@pytest.mark.parametrize(
    "ears",
    [
        "",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
    ],
)
def test_the_main_thread_is_known_whichever_thread_hears(ears: str) -> None:
    code = f"""
import faulthandler, os, signal, threading, time
faulthandler.register(signal.SIGUSR1, all_threads=True)
def of_main():
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.3)
def of_another():
    time.sleep(0.6)
threading.Thread(target=of_another).start()
{ears}
of_main()
"""
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )

    assert stacks.of_main_thread(said.stderr)[0].endswith(" of_main")
