"""Everything that the page can show of a run, as JSON. Words are those of the other reports."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from orchestrator.concluded.matrix import Matrix
from orchestrator.reports import before_after, difference, explain, wording
from orchestrator.reports.document import Document, ProofRow
from orchestrator.reports.page import cells, differences, weighed
from orchestrator.reports.page.packed import Pool
from orchestrator.reports.rows import CellRow

Log = Callable[[str], Sequence[str]]
"""The end of a log, by its path as a cell has it."""

LOGS_BYTES = 3 * 2**19
"""Of all logs together: a page is to be opened, and the run's folder has the rest."""

PLACE = "hardware/model/backend/build"
"""Where a cell's id goes in the command that runs it alone."""


def to_json(report: Document, matrix: Matrix, command: Sequence[str], log: Log) -> str:
    pool = Pool()
    logs = dict(_logs(report.cells, log))
    weights = weighed.by_cell(report)
    pairs = [*zip(matrix.cells, report.cells, strict=True)]
    packed: dict[str, Any] = {
        "run": report.run,
        "suite": report.suite,
        "ships": report.gate.ships,
        "sentence": report.gate.sentence,
        "note": wording.emulation(report),
        "weighed": [*weighed.of_run(report)],
        "disagreements": [str(each) for each in report.disagreements],
        "command": [*explain.alone(report, PLACE, command)],
        "place": PLACE,
        "builds": dict(_builds(report.cells)),
        "proof": _proof(report.proof, report.cells) if report.proof else None,
        "cells": [
            pool.put(cells.shown(report, cell, row, weights.get(row.id, {}))) for cell, row in pairs
        ],
        "details": [
            pool.put(cells.detail(report, row, weights.get(row.id, {}), logs.get(row.id, ())))
            for row in report.cells
        ],
        "kinds": [*map(str, difference.ORDER)],
        "differences": [pool.put(each) for each in differences.told(matrix, report.comparison)],
    }
    packed |= {"shapes": pool.shapes, "values": pool.values}
    return json.dumps(packed, ensure_ascii=False, separators=(",", ":"))


def _builds(rows: Iterable[CellRow]) -> Iterator[tuple[str, str]]:
    by_name: dict[str, list[CellRow]] = {}
    for row in rows:
        by_name.setdefault(row.build.name, []).append(row)
    for name, its in by_name.items():
        yield name, " · ".join(wording.build(its))


def _logs(rows: Sequence[CellRow], log: Log) -> Iterator[tuple[str, Sequence[str]]]:
    """Those of cells that block first, as long as there is room."""
    left = LOGS_BYTES
    for row in sorted(rows, key=cells.importance):
        if (path := explain.telling_log(row)) is None:
            continue
        lines = [line[: explain.LINE_CHARS] for line in log(path)]
        left -= sum(len(line.encode()) for line in lines)
        if left < 0:
            return
        yield row.id, lines


def _proof(proof: ProofRow, rows: tuple[CellRow, ...]) -> dict[str, Any]:
    lines = [
        {
            "asked": [line.subject, line.target_asked, line.draft_asked],
            "claimed": line.claimed,
            "answers": {
                build: [str(answer.verdict), answer.text] for build, answer in line.answers.items()
            },
        }
        for line in before_after.lines(proof, rows)
    ]
    return {
        "sentence": proof.sentence,
        "standing": str(proof.standing),
        "reasons": proof.reasons,
        "arms": {build: str(arm) for build, arm in proof.arms.items()},
        "lines": lines,
        "regressions": [*wording.regressions(proof.regressions)],
        "attempts": [*wording.regressions(proof.attempts)],
    }
