"""A folder for temporary files that is full, and what is then said."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ray.small_disk import SmallDisk, small_disk
from tests.unit.standin import CALLER, ROOT, a_request, packed

pytestmark = pytest.mark.usefixtures("no_host_stays")


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    """Below a short path, as sockets need it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        small_disk(Path(folder, "d"), "size=64k") as small,
    ):
        yield small


def test_a_full_folder_for_temporary_files_is_one_clear_error(
    tmp_path: Path, disk: SmallDisk
) -> None:
    disk.fill()
    # Python itself looks for another place when it starts; this one was chosen before.
    caller = f"import tempfile; tempfile.tempdir = {str(disk.folder)!r}\n{CALLER}"
    request = packed(a_request(tmp_path, "report()"))

    ended = subprocess.run(
        [*disk.prefix, "env", f"PYTHONPATH={ROOT}", sys.executable, "-c", caller, request],
        capture_output=True,
        text=True,
        check=False,
    )

    last_line = ended.stderr.strip().splitlines()[-1]
    assert last_line.startswith(f"jobs.node.errors.NodeError: {disk.folder}")
    assert last_line.endswith("can't be written: No space left on device")
