"""What a person is told while a run goes on."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.running import progress
from orchestrator.running.forecast import Work
from orchestrator.running.progress import ConsoleProgress
from tests.builders import a_record

CELLS = 24


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_a_log_file_is_told_now_and_then_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, screen = Clock(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    shown = ConsoleProgress(Console(file=screen, width=200))
    work = {f"cpu/m{number}/b/c": Work(seconds=6.0) for number in range(20)}
    shown.planned(work, kept=20, cells=40, at_once=1)

    with shown:
        for cell_id in work:
            clock.now += 6
            shown.ended(a_record(cell_id))
            shown.look({})

    told = [line.strip() for line in screen.getvalue().splitlines() if "left" in line]
    assert told[0] == "0:36 26 of 40 cells done, 0 running, 14 left, about 84 s"
    assert len(told) == 3


# On a terminal: a process of its own shows 24 cells, of which three run at a time.


class Terminal:
    """Of any width, but for what is asked about it: lines, and what is written over them."""

    def __init__(self, text: str) -> None:
        self.lines = [""]
        self.row = self.column = 0
        for control, plain in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n])|([^\x1b\r\n]+)", text):
            self._write(plain) if plain else self._obey(control)

    def _write(self, text: str) -> None:
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + text + line[self.column + len(text) :]
        self.column += len(text)

    def _obey(self, control: str) -> None:
        match control:
            case "\r":
                self.column = 0
            case "\n":
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            case "\x1b[2K":
                self.lines[self.row] = ""
            case _ if control.endswith("A"):
                self.row = max(0, self.row - int(control[2:-1] or 1))
            case _:
                pass  # colours, and whether the cursor is seen


def shown_on(sizes: Sequence[tuple[int, int]], folder: Path) -> str:
    """All that is written while the terminal has these sizes (rows, columns) in turn."""
    ours, theirs = pty.openpty()
    _resize(ours, sizes[0])
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.shown_on_a_terminal", str(folder), str(CELLS)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    written = b"".join(_until_closed(ours, sizes))
    os.close(ours)
    assert child.wait() == 0, written.decode()
    return written.decode()


def _until_closed(terminal: int, sizes: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    waiting = [*sizes[1:]]
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # so a terminal says that nobody has it open any more
            return
        yield chunk
        if waiting and b"passed" in chunk:
            _resize(terminal, waiting.pop(0))


def _resize(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


@pytest.mark.parametrize(
    "sizes",
    [[(30, 120), (30, 20), (4, 20), (2, 5), (1, 1), (50, 200)], [(1, 1)]],
    ids=["shrinks", "tiny"],
)
def test_every_line_is_on_the_terminal_once_whatever_its_size(
    sizes: list[tuple[int, int]], tmp_path: Path
) -> None:
    assert told_once(shown_on(sizes, tmp_path))


def told_once(text: str) -> bool:
    """Every cell that ended, in order, and nothing is left of what was shown in between."""
    lines = Terminal(text).lines
    told = [re.findall(r"cpu/model-\d+/auto/build", line) for line in lines if "passed" in line]
    expected = [[f"cpu/model-{number}/auto/build"] for number in range(CELLS)]
    return told == expected and not any("left" in line or "load" in line for line in lines)


def test_what_runs_is_shown_with_its_phase_and_age(tmp_path: Path) -> None:
    shown = shown_on([(30, 120)], tmp_path)

    assert told_once(shown)
    assert re.search(r" 1 s  load  cpu/model-\d+/auto/build", shown)
    assert re.search(r" 0 s  waits for its host  cpu/model-\d+/auto/build", shown)
    assert re.search(r"\d+ of 24 cells done, 3 running, \d+ left, about \d+ s", shown)
