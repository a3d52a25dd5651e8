"""Which processes belong to a cell."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobs import processes
from jobs.processes import AT_ONCE, MARKER, Step, Tree, alive, end_all, identify

TOKEN = uuid.uuid4().hex


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_session_belongs_to_its_leaders_cell(leader: subprocess.Popen[bytes]) -> None:
    tree = Tree(token=TOKEN, leader=identify(leader.pid))

    assert identify(leader.pid) in alive(tree)
    assert identify(os.getpid()) not in alive(tree)


def test_an_id_that_another_process_has_now_is_not_taken_for_the_cell(
    leader: subprocess.Popen[bytes],
) -> None:
    earlier = replace(identify(leader.pid), started=1)

    assert alive(Tree(token=TOKEN, leader=earlier)) == frozenset()
    assert not end_all(Tree(token=TOKEN, leader=earlier), AT_ONCE).signalled
    assert leader.poll() is None


def test_who_carries_the_token_belongs_to_the_cell() -> None:
    carrier = subprocess.Popen(
        ["sleep", "600"], env=os.environ | {MARKER: TOKEN}, start_new_session=True
    )

    assert {process.pid for process in end_all(Tree(token=TOKEN), AT_ONCE).signalled} == {
        carrier.pid
    }
    assert carrier.wait() == -signal.SIGKILL


def test_a_process_that_does_not_wait_for_sigusr1_does_not_get_it() -> None:
    carrier = subprocess.Popen(["sleep", "0.3"], env=os.environ | {MARKER: TOKEN})

    ended = end_all(Tree(token=TOKEN), [Step(signal=signal.SIGUSR1, wait_s=5.0)])

    assert not ended.signalled
    assert carrier.wait() == 0


def test_what_does_not_end_is_told(leader: subprocess.Popen[bytes]) -> None:
    tree = Tree(token=TOKEN, leader=identify(leader.pid))

    ended = end_all(tree, [Step(signal=None, wait_s=0.1)])

    assert identify(leader.pid) in ended.left


def test_no_process_has_an_unknown_id() -> None:
    with pytest.raises(ProcessLookupError):
        processes.identify(2**22 + 1)
