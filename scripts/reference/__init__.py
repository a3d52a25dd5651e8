"""
The reference in docs/reference, and what a shell completes: made from what the program itself
goes by. `python -m scripts.reference` writes them; a test holds what is committed against it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.reference import (
    categories,
    commands,
    configuration,
    exit_codes,
    report,
    words,
)

ROOT = Path(__file__).parents[2]
DOCS = "docs/reference"

TEXTS: Mapping[str, Callable[[], str]] = {
    f"{DOCS}/cli.md": commands.text,
    f"{DOCS}/configuration.md": configuration.text,
    f"{DOCS}/exit-codes.md": exit_codes.text,
    f"{DOCS}/failure-categories.md": categories.text,
    f"{DOCS}/report.md": report.text,
    "orchestrator/completing/words.json": words.text,
}
