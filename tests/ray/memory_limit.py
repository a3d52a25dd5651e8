"""A group of processes that the kernel lets have so much memory; the rights of root are needed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@contextmanager
def memory_limit(pid: int, bytes_: int) -> Iterator[None]:
    """What the process allocates from now on counts; what it had does not."""
    is_v1 = (ROOT / "memory").exists()
    parent = ROOT / "memory" if is_v1 else ROOT
    group = parent / f"matrix-test-{os.getpid()}"
    group.mkdir()
    try:
        limit = group / ("memory.limit_in_bytes" if is_v1 else "memory.max")
        limit.write_text(str(bytes_))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for member in (group / "cgroup.procs").read_text().split():
            (parent / "cgroup.procs").write_text(member)
        group.rmdir()
