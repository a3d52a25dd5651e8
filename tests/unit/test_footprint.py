"""How much memory a cell is said to have had."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import processes
from jobs.node.footprint import Footprint
from tests.unit.standin import a_request, run

pytestmark = pytest.mark.usefixtures("no_host_stays")


def test_what_the_processes_of_a_cell_have_of_their_own_counts_together() -> None:
    code = """
import os, time
os.fork()
block = b"x" * 300 * 2**20
os.write(1, b".")
time.sleep(600)
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as cell:
        assert cell.stdout is not None
        both_are_full = cell.stdout.read(2)
        footprint = Footprint(processes.Tree(leader=processes.identify(cell.pid)))

        footprint.look()
        os.killpg(cell.pid, signal.SIGKILL)

    assert both_are_full == b".."
    assert footprint.most_mib == pytest.approx(600, rel=0.05)


def test_a_cell_too_short_to_be_looked_at_tells_by_itself(tmp_path: Path) -> None:
    code = """
        from jobs import memory
        block = b"x" * 300 * 2**20
        (folder / "memory.json").write_text(json.dumps({"own_mib": memory.own_mib(os.getpid())}))
        report()
    """

    assert run(a_request(tmp_path, code))["memory_mib"] == pytest.approx(300, rel=0.05)


@pytest.mark.parametrize("text", ["[]", "{}", '{"own_mib": "much"}', "{"])
def test_what_is_no_number_of_its_memory_is_not_heeded(tmp_path: Path, text: str) -> None:
    code = f"(folder / 'memory.json').write_text({text!r}); report()"

    attempt = run(a_request(tmp_path, code))

    assert attempt["exit"]["code"] == 0
    assert attempt["memory_mib"] in {None, *range(20)}


def test_neither_what_a_host_had_nor_what_files_hold_is_a_cells_own(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    with weights.open("wb") as file:
        file.write(b"x" * 100 * 2**20)
        os.fsync(file.fileno())
    code = f"""
        import mmap
        with open({str(weights)!r}) as file:
            loaded = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        assert loaded.find(b"y") == -1
        time.sleep(1)
        report()
    """
    env = {"STANDIN_PRELOAD": "global preloaded; preloaded = b'x' * 100 * 2**20"}

    attempt = run(a_request(tmp_path, code, env=env))

    assert attempt["exit"]["code"] == 0
    assert attempt["memory_mib"] < 20
