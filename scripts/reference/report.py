"""docs/reference/report.md: what `--format json` holds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.reports.document import Document
from scripts.reference import classes, kinds, said
from scripts.reference.markdown import code, page, table

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"

INTRODUCTION = """\
What `vllm-matrix report RUN --format json` prints, and `summary.json` in a run's folder holds. The
schema itself is [report.schema.json](../report.schema.json); what is promised of it, and how to
read it, is in [JSON report](../json.md).
"""


def text() -> str:
    schema = json.loads(SCHEMA.read_text())
    definitions = schema["$defs"]
    reached = classes.reached_from(Document)
    described = {"Document": schema, **definitions}
    parts = []
    for name in [name for name in reached if "properties" in described.get(name, {})]:
        parts += [
            f"## {name}",
            said.of_class(reached[name]),
            _keys(described[name], reached[name], definitions),
        ]
    return page("Keys of the JSON report", "docs/report.schema.json", INTRODUCTION, *parts)


def _keys(described: Mapping[str, Any], cls: type, definitions: Mapping[str, Any]) -> str:
    required = {*described.get("required", ())}
    return table(
        ["key", "type", "always there", "meaning"],
        (
            [
                code(key),
                kinds.in_words(part, definitions),
                "yes" if key in required else "",
                said.of_attributes(cls).get(key, ""),
            ]
            for key, part in described["properties"].items()
        ),
    )
