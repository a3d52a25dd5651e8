"""Whether a lock on a file holds for other machines that share its file system."""

from pathlib import Path

PRIVATE_LOCKS = {"nolock", "local_lock=all", "local_lock=flock", "localflock"}
"""Options of NFS and Lustre with which each machine has locks of its own."""


def private_locks(folder: Path, mounts: str | None = None) -> str | None:
    """The option that keeps its locks from other machines; *mounts* as the kernel lists them."""
    if mounts is None:
        mounts = Path("/proc/self/mountinfo").read_text()
    # The last of several at the same place lies on top.
    mount = max(
        (line for line in reversed(mounts.splitlines()) if folder.is_relative_to(_place(line))),
        key=lambda line: len(_place(line)),
        default="",
    )
    options = {option for field in mount.split()[5:] for option in field.split(",")}
    return min(options & PRIVATE_LOCKS, default=None)


def _place(mount: str) -> str:
    # The kernel writes a space in a path as \040.
    return mount.split()[4].encode().decode("unicode_escape")
