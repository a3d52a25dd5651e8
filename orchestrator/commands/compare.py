"""What became of every cell since a baseline: of two runs, or two builds of one (RUN:BUILD)."""

import sys
from collections.abc import Sequence

import pydantic

from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.concluded.comparison import compare
from orchestrator.errors import SHIPS, ConfigError
from orchestrator.kept import sides
from orchestrator.reports import difference, difference_forms
from orchestrator.reports.difference import ComparisonRow


def parser() -> Parser:
    words = (
        Parser(
            "compare",
            __doc__,
            {
                "compare 2026-12-01-demo latest": "what became of every cell in between",
                "compare latest:v0_32 latest:v0_33": "two builds of the newest run",
                "compare 2026-12-01-demo latest --format md": "for a pull request or a page",
            },
        )
        .sides("base")
        .sides("candidate")
    )
    words.add_argument("--format", choices=("terminal", "md", "json"), default="terminal")
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    base, candidate = sides.load([chosen.base, chosen.candidate])
    compared = compare(base, candidate)
    if not compared.has_common_ground:
        raise ConfigError(sides.why_nothing_in_common(base, candidate))
    row = difference.row(compared, candidate.matrix)
    if chosen.format == "terminal":
        screen().print(difference_forms.render(row))
    else:
        text = _json if chosen.format == "json" else difference_forms.to_markdown
        sys.stdout.write(text(row))
    return SHIPS


def _json(row: ComparisonRow) -> str:
    return pydantic.TypeAdapter(ComparisonRow).dump_json(row, indent=1).decode() + "\n"
