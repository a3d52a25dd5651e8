"""Past runs as tables that SQL can ask. DuckDB keeps them in memory, and reaches nothing else."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pydantic_core

from orchestrator.asked import cell_ids
from orchestrator.asked.conf_files import AXES
from orchestrator.asked.config import FieldName
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.concluded.timeline import Entry
from orchestrator.errors import ConfigError
from orchestrator.kept.past import PastRun

_TABLES: dict[str, dict[str, str]] = {
    "runs": {
        "run": "VARCHAR",
        "suite": "VARCHAR",
        "command": "VARCHAR[]",
        "cells": "INTEGER",
        "passed": "INTEGER",
        "failed": "INTEGER",
        "not_run": "INTEGER",
        "first_at": "TIMESTAMP",
        "last_at": "TIMESTAMP",
        "troubles": "VARCHAR[]",
    },
    "records": {
        "run": "VARCHAR",
        "cell": "VARCHAR",
        "question": "VARCHAR",
        "hardware": "VARCHAR",
        "model": "VARCHAR",
        "backend": "VARCHAR",
        "build": "VARCHAR",
        "fingerprint": "VARCHAR",
        "recorded_at": "TIMESTAMP",
        "is_last": "BOOLEAN",
        "verdict": "VARCHAR",
        "category": "VARCHAR",
        "outcome": "VARCHAR",
        "reasons": "VARCHAR[]",
        "earlier": "VARCHAR[]",
        "says_nothing": "BOOLEAN",
        "kept_from": "VARCHAR",
        "vllm": "VARCHAR",
        "patches": "VARCHAR[]",
        "build_digest": "VARCHAR",
        "digest": "VARCHAR",
        "expected": "VARCHAR",
        "target_attention": "VARCHAR",
        "draft_attention": "VARCHAR",
        "kv_layout": "VARCHAR",
        "runner": "VARCHAR",
        "node": "VARCHAR",
        "seconds": "DOUBLE",
        "memory_mib": "INTEGER",
    },
    "requests": {
        "run": "VARCHAR",
        "cell": "VARCHAR",
        "field": "VARCHAR",
        "asked": "VARCHAR",
        "got": "VARCHAR",
        "verdict": "VARCHAR",
    },
    "facts": {"run": "VARCHAR", "cell": "VARCHAR", "fact": "VARCHAR", "value": "VARCHAR"},
}
_VIEWS = {"cells": "SELECT * EXCLUDE (is_last) FROM records WHERE is_last"}

_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}

NO_QUERY = (
    "--sql takes one query, of those that only read: SELECT ..., FROM ..., DESCRIBE TABLE, "
    "SUMMARIZE TABLE, SHOW TABLES"
)

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Database:
    def __init__(self, runs: Iterable[PastRun]) -> None:
        self.troubles: list[str] = []
        self._connection = duckdb.connect(":memory:", config=_ALONE)
        for name, columns in _TABLES.items():
            described = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
            self._connection.execute(f"CREATE TABLE {name} ({described})")
        for run in runs:
            self._load(run)
        for name, query in _VIEWS.items():
            self._connection.execute(f"CREATE VIEW {name} AS {query}")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def ask(self, query: str) -> Answer:
        """Raises ConfigError for anything but one query that can be answered."""
        try:
            statements = self._connection.extract_statements(query)
            if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
                raise ConfigError(NO_QUERY)
            found = self._connection.execute(statements[0])
            columns = tuple(str(column[0]) for column in found.description or ())
            return Answer(columns=columns, rows=tuple(found.fetchall()))
        except duckdb.Error as error:
            raise ConfigError("the query can't be answered:", [str(error).strip()]) from None

    def _load(self, run: PastRun) -> None:
        entries, troubles = run.read()
        self.troubles += troubles
        self._insert("runs", [_run(run, entries, troubles)])
        self._insert("records", map(_record, entries))
        last = [entry for entry in entries if entry.is_last]
        self._insert("requests", (row for entry in last for row in _requests(entry)))
        self._insert("facts", (row for entry in last for row in _facts(entry)))

    def _insert(self, table: str, rows: Iterable[Row]) -> None:
        shape = json.dumps([_TABLES[table]])
        text = pydantic_core.to_json([*rows]).decode()
        self._connection.execute(
            f"INSERT INTO {table} SELECT unnest(from_json(?::JSON, ?), recursive := true)",
            [text, shape],
        )


def tables() -> Mapping[str, Iterable[str]]:
    """Every table and view, with its columns."""
    columns = {name: [*described] for name, described in _TABLES.items()}
    return columns | {"cells": [name for name in columns["records"] if name != "is_last"]}


def _run(run: PastRun, entries: Iterable[Entry], troubles: Iterable[str]) -> Row:
    last = [entry for entry in entries if entry.is_last]
    times = sorted(entry.record.at for entry in entries if entry.record)
    count = {verdict: sum(entry.verdict is verdict for entry in last) for verdict in Verdict}
    return {
        "run": run.name,
        "suite": run.asked.suite if run.asked else None,
        "command": run.asked.command if run.asked else None,
        "cells": len(last),
        "passed": count[Verdict.PASSED],
        "failed": count[Verdict.FAILED],
        "not_run": count[Verdict.NOT_RUN],
        "first_at": times[0] if times else None,
        "last_at": times[-1] if times else None,
        "troubles": [*troubles],
    }


def _record(entry: Entry) -> Row:
    row: Row = {
        "run": entry.run,
        "cell": entry.cell_id,
        "question": cell_ids.question(entry.cell_id),
        **dict(zip(AXES, entry.cell_id.split("/"), strict=False)),
        "fingerprint": entry.fingerprint,
        "is_last": entry.is_last,
        "verdict": entry.verdict,
        "says_nothing": entry.says_nothing,
        "expected": _expected(entry),
    }
    if (record := entry.record) is None:
        return row | {"reasons": ["there is no record of it"]}
    found = entry.facts or {}
    return row | {
        "recorded_at": record.at,
        "category": record.judgement.category,
        "outcome": record.judgement.outcome,
        "reasons": record.judgement.reasons,
        "earlier": record.earlier,
        "kept_from": record.kept_from,
        "vllm": entry.vllm_version,
        "patches": [*record.build.patches] if record.build else None,
        "build_digest": record.build.digest if record.build else None,
        "digest": record.digest or None,
        "target_attention": _got(record, "target.attention_backend"),
        "draft_attention": _got(record, "draft.attention_backend"),
        "kv_layout": found.get("KV layout"),
        "runner": found.get("runner"),
        "node": record.attempt.placement.node if record.attempt else None,
        "seconds": record.attempt.seconds if record.attempt else None,
        "memory_mib": record.attempt.memory_mib if record.attempt else None,
    }


def _got(record: Record, field: FieldName) -> str | None:
    request = record.judgement.requests.get(field)
    return request.got if request else None


def _expected(entry: Entry) -> str | None:
    if entry.cell is None:
        return None
    return pydantic_core.to_json(dataclasses.asdict(entry.cell.expectation)).decode()


def _requests(entry: Entry) -> Iterator[Row]:
    for field, request in (entry.record.judgement.requests if entry.record else {}).items():
        seen = {"asked": request.asked, "got": request.got, "verdict": request.verdict}
        yield {"run": entry.run, "cell": entry.cell_id, "field": field, **seen}


def _facts(entry: Entry) -> Iterator[Row]:
    for fact, value in (entry.facts or {}).items():
        yield {"run": entry.run, "cell": entry.cell_id, "fact": fact, "value": value}
