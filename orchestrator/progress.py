"""What a person sees while a run goes on: one line per event, also in a log file."""

import math
import time
from typing import Protocol

from rich.console import Console
from rich.markup import escape

from orchestrator.judge import Verdict
from orchestrator.records import Record

FORECAST_EVERY_S = 30.0

STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.NOT_RUN: "yellow"}


class Progress(Protocol):
    def say(self, line: str) -> None: ...

    def planned(self, cells: int, todo: int) -> None: ...

    def ended(self, record: Record) -> None: ...


class ConsoleProgress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._forecast = self._planned = self._started
        self._cells = 0
        self._done = self._kept = 0

    def say(self, line: str) -> None:
        self._print(f"[dim]{escape(line)}[/]")

    def planned(self, cells: int, todo: int) -> None:
        self._cells, self._done, self._kept = cells, cells - todo, cells - todo
        self._forecast = self._planned = time.monotonic()
        if self._done:
            self.say(f"{self._done} of {cells} cells have a verdict already, which is kept")

    def ended(self, record: Record) -> None:
        self._done += 1
        style = STYLES[record.verdict]
        counter = f"{self._done:>{len(str(self._cells))}}/{self._cells}"
        self._print(
            f"[dim]{counter}[/] [{style}]{record.verdict:<7}[/] {escape(record.cell_id)}"
            f"  [dim]{escape(_gist(record))}[/]"
        )
        if time.monotonic() - self._forecast > FORECAST_EVERY_S and self._done < self._cells:
            self._forecast = time.monotonic()
            self.say(self._what_is_left())

    def _what_is_left(self) -> str:
        """At the pace so far, in which starting hosts is included."""
        pace_s = (time.monotonic() - self._planned) / (self._done - self._kept)
        left = self._cells - self._done
        return f"{left} cells left, about {math.ceil(pace_s * left / 60)} min at the pace so far"

    def _print(self, text: str) -> None:
        seconds = int(time.monotonic() - self._started)
        clock = f"{seconds // 60}:{seconds % 60:02}"
        self._console.print(f"[dim]{clock:>5}[/] {text}", soft_wrap=True, highlight=False)


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
