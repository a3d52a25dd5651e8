"""How much memory a process has of its own."""

from pathlib import Path


def own_mib(pid: int) -> int:
    """
    What would be free if the process went: neither what it still shares with the host that
    it was forked from, nor pages of files, which the kernel keeps or drops as it likes.
    0 if there is no such process.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return 0
    return int(rollup.partition(b"\nPrivate_Dirty:")[2].split()[0]) >> 10
