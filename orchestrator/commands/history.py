"""What all runs say of a cell: passed last, changed by which release, flaky; or what SQL asks."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pydantic_core

from orchestrator import discretion
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.concluded.timeline import timelines
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept import past
from orchestrator.kept.past import PastRun
from orchestrator.kept.records import words as ours
from orchestrator.reports import history

TABLES = ("runs", "cells", "records", "requests", "facts")


def parser() -> Parser:
    words = Parser(
        "history",
        __doc__,
        {
            "history h100-emulated/llama31_8b_eagle3/auto": "of every build, in all runs",
            "history '*/v0_33_gpu' --format json": "of all cells of one build, for a program",
            "history --sql 'SELECT suite, count(*) FROM runs GROUP BY ALL'": "docs/history.md",
        },
    )
    words.add_argument(
        "cells",
        nargs="?",
        metavar="CELLS",
        help="an id, or a glob of ids; the build may be left out",
    )
    words.add_argument("--sql", metavar="QUERY", help=f"ask the tables {', '.join(TABLES)}")
    words.add_argument("--runs", default="runs", metavar="FOLDER", help="that the runs are kept in")
    words.add_argument("--format", choices=("terminal", "json"), default="terminal")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    if (chosen.cells is None) is (chosen.sql is None):
        raise ConfigError("name cells, such as 'h100-emulated/*', or ask with --sql: one of both")
    runs = past.runs_in(Path(chosen.runs))
    _show_names_of(runs)
    as_json = chosen.format == "json"
    return _asked(chosen.sql, runs, as_json) if chosen.sql else _told(chosen.cells, runs, as_json)


def _told(glob: str, runs: Iterable[PastRun], as_json: bool) -> int:
    entries, troubles = past.entries(runs, glob)
    told = history.build(timelines(entries), troubles)
    if as_json:
        sys.stdout.write(history.to_json(told))
    else:
        screen().print(history.render(told))
    return SHIPS


def _asked(query: str, runs: Iterable[PastRun], as_json: bool) -> int:
    from orchestrator.kept.database import Database

    database = Database(runs)
    answer = database.ask(query)
    for trouble in database.troubles:
        sys.stderr.write(f"not read: {discretion.plain(trouble)}\n")
    if as_json:
        data = history.as_data(answer)
        sys.stdout.write(pydantic_core.to_json(data, indent=1, fallback=str).decode() + "\n")
    else:
        screen().print(history.table(answer))
    return SHIPS


def _show_names_of(runs: Iterable[PastRun]) -> None:
    """Whatever secret has the same value as a name of a cell."""
    ids = {cell_id for run in runs for cell_id in run.cells}
    names = {part for cell_id in ids for part in cell_id.split("/")}
    discretion.hide({}, words={*ids, *names, *ours(), *(run.name for run in runs)})
