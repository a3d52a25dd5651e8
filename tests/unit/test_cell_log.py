"""What of a cell's output is kept, however much it is and whoever wrote it."""

import os
import threading
from pathlib import Path

import pytest

from jobs.node import cell_log
from jobs.node.cell_files import tail
from jobs.node.cell_log import LONGEST_REMARK, CellLog
from jobs.node.errors import NodeError
from jobs.secrets import redactor
from tests.unit.standin import a_request, run

SECRET = "correct-horse-battery"
HIDING = redactor({"env": {"SOME_TOKEN": SECRET}}, ())


@pytest.fixture
def _small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_log, "HEAD", 1000)
    monkeypatch.setattr(cell_log, "TAIL", 1000)


@pytest.mark.usefixtures("_small_logs")
def test_the_head_and_the_tail_of_a_long_log_stay(tmp_path: Path) -> None:
    path = tmp_path / "probe.log"
    written = b"".join(b"line %d\n" % number for number in range(20_000))

    with CellLog(path, HIDING) as log:
        for at in range(0, len(written), 700):
            os.write(log.sink, written[at : at + 700])
            log.take()
            assert path.stat().st_size < 5000
        log.finish()

    head, marker, tail = path.read_text().partition("[node] ")
    count, _, tail = tail.partition(" bytes are left out here\n")
    assert marker
    assert written.startswith(head.rstrip("\n").encode())
    assert written.endswith(tail.encode())
    assert len(head) - 1 + int(count) + len(tail) == len(written)


def test_a_secret_that_comes_in_two_pieces_is_hidden(tmp_path: Path) -> None:
    with CellLog(tmp_path / "probe.log", HIDING) as log:
        for piece in (f"with {SECRET[:7]}", f"{SECRET[7:]} it worked\nand on"):
            os.write(log.sink, piece.encode())
            log.take()
        log.finish()

    assert (tmp_path / "probe.log").read_text() == "with *** it worked\nand on"


def test_who_writes_much_is_not_held_up_for_long(tmp_path: Path) -> None:
    piece = b"x" * 99 + b"\n"

    with CellLog(tmp_path / "probe.log", HIDING) as log:
        writer = threading.Thread(
            target=lambda: [os.write(log.sink, piece) for _ in range(100_000)]
        )
        writer.start()
        while writer.is_alive():
            log.take_for(0.02)
        log.finish()

    assert (tmp_path / "probe.log").stat().st_size == len(piece) * 100_000


def test_no_half_of_a_secret_stays_where_a_text_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "probe.log"
    with CellLog(path, HIDING) as log:
        log.say("." * (LONGEST_REMARK - 4) + SECRET)
    assert SECRET[:4] not in path.read_text()

    path.write_text(f"{SECRET}\nbehind\n")
    assert tail(path, chars=len("half\nbehind\n")) == "behind\n"


def test_a_disk_that_is_full_is_the_nodes_fault() -> None:
    with CellLog(Path("/dev/full"), HIDING) as log:
        os.write(log.sink, b"a line\n")

        with pytest.raises(NodeError, match="/dev/full can't be written: No space left"):
            log.take()


@pytest.mark.usefixtures("no_host_stays")
def test_what_a_cell_and_its_children_write_comes_without_secrets(tmp_path: Path) -> None:
    code = """
        print(os.environ["SOME_TOKEN"], flush=True)
        subprocess.run(["sh", "-c", "echo child $SOME_TOKEN >&2"])
        os._exit(1)
    """

    attempt = run(a_request(tmp_path, code, env={"SOME_TOKEN": SECRET}))

    assert attempt["log_tail"] == "***\nchild ***"
    assert SECRET not in Path(attempt["log"]).read_text()
