"""Where a node keeps what it reuses, and whom it trusts with that."""

import os
import stat
from pathlib import Path

import pytest

from jobs.node import caches
from jobs.node.builds.errors import BuildNodeError
from jobs.node.builds.mounts import private_locks

LOCAL = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw"
NFS = "40 22 0:40 / {} rw,relatime - nfs4 server:/export rw,vers=4.2,{}"


def test_the_home_of_a_cache_is_the_node_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ray")
    monkeypatch.delenv(caches.VARIABLE, raising=False)

    assert caches.folder("~/mine") == Path("/home/ray/mine")
    assert caches.folder(caches.USUAL) == Path("/home/ray/.cache/vllm-matrix")


def test_whoever_runs_a_node_may_name_its_usual_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(caches.VARIABLE, "/scratch/matrix")

    assert caches.folder(caches.USUAL) == Path("/scratch/matrix")
    assert caches.folder("/else/where") == Path("/else/where")


def test_a_cache_is_made_for_its_user_alone(tmp_path: Path) -> None:
    cache = tmp_path / "some" / "cache"

    caches.secure(cache)

    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_cache_that_anyone_may_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    with pytest.raises(BuildNodeError, match=r"anyone may write to the cache .*chmod o-w"):
        caches.secure(tmp_path)


def test_a_cache_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() == 0:
        os.chown(tmp_path, 12345, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)

    with pytest.raises(BuildNodeError, match=r"belongs to .*, who could put there what engines"):
        caches.secure(tmp_path)


def test_root_and_a_group_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o2775)
    caches.secure(tmp_path)

    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    caches.secure(Path("/usr"))


@pytest.mark.parametrize(
    ("options", "private"),
    [("local_lock=none", None), ("local_lock=all,addr=10.0.0.1", "local_lock=all")],
)
def test_a_mount_tells_whether_its_locks_hold_elsewhere(options: str, private: str | None) -> None:
    mounts = "\n".join([LOCAL, NFS.format("/home", options)])

    assert private_locks(Path("/home/ray/.cache/x"), mounts) == private
    assert private_locks(Path("/homes/ray"), mounts) is None


def test_of_mounts_the_innermost_and_the_last_counts() -> None:
    private, shared = "local_lock=all", "local_lock=none"
    inner = "\n".join([NFS.format("/a", private), NFS.format("/a/b\\040c", shared)])
    over = "\n".join([NFS.format("/a", private), NFS.format("/a", shared)])

    assert private_locks(Path("/a/b c/x"), inner) is None
    assert private_locks(Path("/a/b"), inner) == private
    assert private_locks(Path("/a/b"), over) is None


def test_this_machine_s_mounts_can_be_read(tmp_path: Path) -> None:
    assert private_locks(tmp_path) is None
