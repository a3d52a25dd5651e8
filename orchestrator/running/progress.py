"""What a person sees while a run goes on: a line per event, and below them what runs now."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.running.forecast import Forecast, Work
from orchestrator.running.underway import Attempted, RunningCells

STATUS_EVERY_S = 30.0
"""For a log file; a terminal has it all the time."""

LOOK_EVERY_S = 1.0
ROWS = 8

STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.NOT_RUN: "yellow"}


class Progress(Protocol):
    def say(self, line: str) -> None: ...

    def begins(self, run: Path, line: str) -> None:
        """The run has its directory, of which *line* tells."""
        ...

    def planned(self, work: Mapping[str, Work], *, kept: int, cells: int, at_once: int) -> None:
        """*work* is what there is to do; *kept* of all *cells* have their verdict."""
        ...

    def look(self, submitted: Mapping[str, str]) -> None:
        """Called while cells run; *submitted* as `Schedule` has it."""
        ...

    def ended(self, *records: Record) -> None: ...


class ConsoleProgress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = self._told = time.monotonic()
        self._looked = -math.inf
        self._forecast = Forecast({}, at_once=1)
        self._where = RunningCells()
        self._running: dict[str, Attempted] = {}
        self._left_s = 0.0
        self._cells = self._done = self._failed = 0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            status = _Status(self._status)
            self._live = Live(status, console=self._console, auto_refresh=False, transient=True)
            self._live.start()
            # A process that is killed could not bring it back.
            self._console.show_cursor()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, line: str) -> None:
        self._print(Text(line, style="dim"))

    def begins(self, run: Path, line: str) -> None:
        del run
        self.say(line)

    def planned(self, work: Mapping[str, Work], *, kept: int, cells: int, at_once: int) -> None:
        self._cells, self._done = cells, kept
        self._forecast = Forecast(work, at_once=at_once)
        self._where = RunningCells()
        self._told = time.monotonic()

    def look(self, submitted: Mapping[str, str]) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return
        self._looked = now
        self._running = self._where.look(submitted)
        self._left_s = self._forecast.left_s(self._running)
        if self._live is not None:
            self._live.refresh()
        elif now - self._told > STATUS_EVERY_S:
            self._told = now
            self.say(", ".join([self._summary(), *_oldest(self._running)]))

    def ended(self, *records: Record) -> None:
        if records:
            self._print(*map(self._line, records))

    def _line(self, record: Record) -> Text:
        self._done += 1
        self._failed += record.verdict is Verdict.FAILED
        self._learn(record)
        style = STYLES[record.verdict]
        counter = f"{self._done:>{len(str(self._cells))}}/{self._cells}"
        return Text.assemble(
            *((counter, "dim"), " ", (f"{record.verdict:<7}", style), f" {record.cell_id}  "),
            (_gist(record), "dim"),
        )

    def _learn(self, record: Record) -> None:
        ran = self._running.pop(record.cell_id, None)
        age_s = ran.age_s + time.monotonic() - self._looked if ran else None
        seconds = record.attempt.seconds if record.attempt else None
        self._forecast.ended(record.cell_id, seconds, age_s=age_s)

    def _status(self, rows: int) -> Iterator[Text]:
        """Of the cells that run at most *rows*, and a summary."""
        by_age = sorted(self._running.items(), key=lambda each: -each[1].age_s)
        for cell_id, cell in by_age[:rows]:
            phase = cell.phase or "waits for its host"
            yield Text(f"      {duration(cell.age_s):>6}  {phase}  {cell_id}", style="cyan")
        if rows and (more := len(by_age) - rows) > 0:
            yield Text(f"      and {more} more", style="cyan")
        if self._cells:
            yield Text(f"      {self._summary()}", style="bold")

    def _summary(self) -> str:
        failed = f" ({self._failed} failed)" if self._failed else ""
        return (
            f"{self._done} of {self._cells} cells done{failed}, {len(self._running)} running, "
            f"{self._cells - self._done} left, about {duration(self._left_s)}"
        )

    def _print(self, *lines: Text) -> None:
        seconds = int(time.monotonic() - self._started)
        clock = Text(f"{seconds // 60}:{seconds % 60:02}".rjust(5) + " ", style="dim")
        text = Text("\n").join(Text.assemble(clock, line) for line in lines)
        self._console.print(text, soft_wrap=True, highlight=False)


class _Status:
    """What is shown below all other lines, as much of it as fits on the screen."""

    def __init__(self, lines: Callable[[int], Iterator[Text]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """A line each, never two, or the terminal would not know how many to take away."""
        # One column less: a full line would put the cursor onto the next one.
        width = max(1, console.width - 1)
        for line in self._lines(max(0, min(ROWS, console.height - 3))):
            line.truncate(width, overflow="ellipsis")
            yield line


def _oldest(running: Mapping[str, Attempted]) -> Iterator[str]:
    if running:
        cell_id, cell = max(running.items(), key=lambda each: each[1].age_s)
        phase = f"in {cell.phase}" if cell.phase else "waiting for its host"
        yield f"longest {cell_id}, {phase} after {duration(cell.age_s)}"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _gist(record: Record) -> str:
    """The most telling fact in a few words."""
    seconds = f"{record.attempt.seconds:.1f} s" if record.attempt else ""
    judgement = record.judgement
    if judgement.verdict is Verdict.NOT_RUN or judgement.category:
        words = [judgement.category or "", *judgement.reasons[:1], seconds]
    else:
        got = [
            f"{name.removesuffix('.attention_backend')} {request.got}"
            for name, request in judgement.requests.items()
            if name.endswith("attention_backend")
        ]
        words = [*got, seconds]
    return "  ".join(word for word in words if word)
