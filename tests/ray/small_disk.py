"""A file system of a few KiB that only some processes see; no rights are needed for it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOUNT = "mount -t tmpfs -o {options} none {folder} && echo there && exec sleep infinity"


class SmallDisk:
    def __init__(self, folder: Path, holder: int) -> None:
        self.folder = folder
        enter = ("nsenter", "--preserve-credentials", "--user", "--mount", f"--target={holder}")
        self.prefix = (*enter, "sh", "-c", f'cd {folder.parent} && exec "$@"', "sh")
        """For the command line of a process that should see it."""

        # As the holder sees it, from outside.
        self.inside = Path(f"/proc/{holder}/root{folder}")

    def fill(self) -> None:
        """To the last byte."""
        with (self.inside / "filler").open("ab", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        (self.inside / "filler").unlink()


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[SmallDisk]:
    folder.mkdir()
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    script = MOUNT.format(options=options, folder=folder)
    with subprocess.Popen([*command, script], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        try:
            yield SmallDisk(folder, holder.pid)
        finally:
            os.kill(holder.pid, signal.SIGKILL)
