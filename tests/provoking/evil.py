"""
What can go wrong inside of an engine. As `vllm/evil.py` it is part of a patched build.

Which deed is done, and where, is in the environment: `MATRIX_EVIL=load:segfault`. A cell
gets it after the fork, so that all of them share a host.
"""

import ctypes
import mmap
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
NEW_MOUNTS = 0x00020000
MIB = 2**20


def at(place: str) -> None:
    where, _, deed = os.environ.get("MATRIX_EVIL", "").partition(":")
    if where == place and is_last():
        from vllm import misleading

        (DEEDS | misleading.DEEDS)[deed]()


def is_last() -> bool:
    """Of several workers, only one is evil."""
    from torch import distributed

    alone = not distributed.is_initialized()
    return alone or distributed.get_rank() == distributed.get_world_size() - 1


def raises() -> None:
    raise RuntimeError("something that nobody has seen before")


def raises_without_words() -> None:
    class WordlessError(Exception):
        def __str__(self) -> str:
            raise ValueError

    raise WordlessError


def says_what_no_encoding_knows() -> None:
    os.write(2, bytes(range(256)) * 8)
    raise RuntimeError("\udcff\x00 \N{SNOWMAN}")


def breaks_the_loader() -> None:
    """Leaves the fault to code that nobody patched."""
    from vllm.v1.worker import cpu_model_runner

    cpu_model_runner.get_model = None


def breaks_the_forward_pass() -> None:
    from vllm.model_executor.models.llama import LlamaModel

    LlamaModel.forward = None


def segfault() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def bus_error() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        memory[0] = 1


def overflows_its_stack() -> None:
    def deeper(_: int) -> list[list[int]]:
        return list(map(deeper, [0]))  # type: ignore[arg-type]  # it never returns

    sys.setrecursionlimit(10**8)
    deeper(0)


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def is_interrupted() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def is_stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def exits_in_peace() -> None:
    os._exit(0)


def exits_with_one() -> None:
    os._exit(1)


def exits_with_three() -> None:
    sys.exit(3)


def hangs() -> None:
    time.sleep(3600)


def hangs_and_will_not_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)


def is_busy() -> None:
    while True:
        pass


def waits_for_a_child() -> None:
    if (child := os.fork()) == 0:
        time.sleep(3600)
    os.waitpid(child, 0)


def opens_too_much() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    while True:
        os.open(os.devnull, os.O_RDONLY)


def starts_too_many_threads() -> None:
    join_cgroup("pids", "pids.max", "16")
    while True:
        threading.Thread(target=time.sleep, args=[3600], daemon=True).start()


def fills_memory_to_its_limit() -> None:
    import torch

    resource.setrlimit(resource.RLIMIT_AS, (64 * 1024 * MIB, 64 * 1024 * MIB))
    torch.empty(128 * 1024 * MIB, dtype=torch.int8)


def fills_memory_of_python() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (64 * 1024 * MIB, 64 * 1024 * MIB))
    bytearray(128 * 1024 * MIB)


def is_too_fat_for_the_kernel() -> None:
    join_cgroup("memory", "memory.limit_in_bytes", str(64 * MIB))
    keep = bytearray(os.urandom(MIB)) * 512
    time.sleep(len(keep))


def fills_the_disk() -> None:
    mount_small(tempfile.gettempdir())
    Path(tempfile.gettempdir(), "model").write_bytes(bytes(4 * MIB))


def writes_where_it_may_not() -> None:
    mount_small(tempfile.gettempdir(), read_only=True)
    Path(tempfile.gettempdir(), "cache").write_text("")


def reads_what_it_may_not() -> None:
    secret = Path(tempfile.gettempdir(), "weights")
    secret.touch(mode=0o600)
    os.seteuid(65534)
    try:
        secret.read_bytes()
    finally:
        os.seteuid(0)


def fills_shared_memory() -> None:
    mount_small("/dev/shm")
    memory = shared_memory.SharedMemory(create=True, size=8 * MIB)
    memory.buf[4 * MIB :] = bytes(4 * MIB)  # type: ignore[index]  # it is not closed


def leaves_no_shared_memory() -> None:
    mount_small("/dev/shm")


def takes_a_port_twice() -> None:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        first.listen()
        second.bind(first.getsockname())


def floods() -> None:
    for _ in range(4000):
        os.write(1, b"nothing to see here\n" * 600)


def leaves_a_daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", "3600"], {})
        os._exit(0)


def tears_its_report() -> None:
    from jobs.probe import files

    def torn(path: Path, text: str) -> None:
        path.write_text(text[: len(text) // 2])

    files.replace = torn


def puts_a_folder_there() -> None:
    from jobs.probe import environment

    report = environment.folder() / "report.json"
    report.unlink(missing_ok=True)
    report.mkdir()


def kills_its_keeper() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)


def kills_its_host() -> None:
    stat = Path("/proc", str(os.getppid()), "stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(3600)


def mount_small(folder: str, *, read_only: bool = False) -> None:
    """One MiB of space that only this process and its children see."""
    libc = ctypes.CDLL(None, use_errno=True)
    private, read = 1 << 18 | 1 << 14, 1
    if libc.unshare(NEW_MOUNTS) or libc.mount(None, b"/", None, private, None):
        raise OSError(ctypes.get_errno(), "no mounts of its own")
    flags = read if read_only else 0
    if libc.mount(b"small", folder.encode(), b"tmpfs", flags, b"size=1m"):
        raise OSError(ctypes.get_errno(), "no small folder")


def join_cgroup(controller: str, limit: str, value: str) -> None:
    """One that `tests.provoking` removes."""
    group = CGROUPS / controller / f"matrix-evil-{os.getpid()}"
    group.mkdir()
    (group / limit).write_text(value)
    (group / "cgroup.procs").write_text(str(os.getpid()))


DEEDS: dict[str, Callable[[], None]] = {
    name: deed for name, deed in globals().items() if callable(deed)
}
