"""What is removed from /dev/shm, and what never is."""

import mmap
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest

from jobs import shared_memory
from tests.unit.standin import eventually

OWNER = """
import mmap, os, sys, time
file = open(sys.argv[1], "w+b")
file.truncate(4096)
mapped = mmap.mmap(file.fileno(), 4096)
file.close()
print("mapped", flush=True)
time.sleep(600)
"""


@pytest.fixture
def name() -> Iterator[str]:
    """Of a file that engines make."""
    chosen = f"psm_{uuid.uuid4().hex[:8]}"
    yield chosen
    (shared_memory.FOLDER / chosen).unlink(missing_ok=True)


def test_what_a_killed_owner_left_is_removed(name: str) -> None:
    before = shared_memory.present()
    with _owner(name) as owner:
        owner.kill()

    assert name in shared_memory.sweep(before)
    assert not (shared_memory.FOLDER / name).exists()


def test_what_a_living_owner_has_mapped_stays(name: str) -> None:
    before = shared_memory.present()
    with _owner(name) as owner:
        assert name not in shared_memory.sweep(before)
        owner.kill()


def test_what_somebody_has_open_stays(name: str) -> None:
    before = shared_memory.present()
    with (shared_memory.FOLDER / name).open("wb"):
        assert name not in shared_memory.sweep(before)


def test_what_was_there_before_stays(name: str) -> None:
    (shared_memory.FOLDER / name).touch()

    assert name not in shared_memory.sweep(shared_memory.present())


@pytest.mark.parametrize("prefix", ["unknown_", "hsakmt_", "xpsm_"])
def test_what_has_no_known_name_stays(prefix: str) -> None:
    file = shared_memory.FOLDER / f"{prefix}{uuid.uuid4().hex}"
    before = shared_memory.present()
    file.touch()

    assert file.name not in shared_memory.sweep(before)
    file.unlink()


@pytest.mark.parametrize("name", ["__KMP_REGISTERED_LIB_{}_0", "__KMP_REGISTERED_LIB_{}"])
def test_what_bears_the_id_of_a_process_stays_as_long_as_that(name: str) -> None:
    before = shared_memory.present()
    with subprocess.Popen(["sleep", "600"]) as maker:
        file = shared_memory.FOLDER / name.format(maker.pid)
        file.touch()
        assert file.name not in shared_memory.sweep(before)
        maker.kill()

    assert file.name in shared_memory.sweep(before)


def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    target.touch()
    before = shared_memory.present()
    (shared_memory.FOLDER / name).symlink_to(target)

    assert shared_memory.sweep(before) == ()
    assert target.exists()


def test_who_opens_a_file_while_it_is_removed_does_no_harm(name: str) -> None:
    """The kernel then tells the holder of a lease, by default with a signal that ends it."""
    opener = subprocess.Popen(
        ["sh", "-c", f"while :; do : 2>&- < {_path(name)}; done"], stderr=subprocess.DEVNULL
    )
    before = shared_memory.present()

    for _ in range(200):
        _path(name).touch()
        assert eventually(lambda: name in shared_memory.sweep(before))

    opener.kill()
    opener.wait()


def test_what_is_mapped_to_read_only_stays(name: str) -> None:
    before = shared_memory.present()
    _path(name).write_bytes(b"x")
    descriptor = os.open(_path(name), os.O_RDONLY)
    with mmap.mmap(descriptor, 1, prot=mmap.PROT_READ):
        os.close(descriptor)
        assert name not in shared_memory.sweep(before)

    assert name in shared_memory.sweep(before)


def test_two_that_sweep_at_once_leave_nothing(name: str) -> None:
    before = shared_memory.present()
    files = [_path(f"{name}{number}") for number in range(100)]
    for file in files:
        file.touch()

    with ThreadPoolExecutor() as pool:
        removed = [*pool.map(shared_memory.sweep, [before] * 4)]

    assert sorted(chain(*removed)) == sorted(file.name for file in files)


def _path(name: str) -> Path:
    return shared_memory.FOLDER / name


def _owner(name: str) -> subprocess.Popen[bytes]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(_path(name))], stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"mapped\n"
    return owner
