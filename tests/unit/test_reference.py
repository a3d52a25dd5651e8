"""The reference is what the program goes by, and says something of everything."""

import json
import re

import pytest

from orchestrator.commands import COMMANDS
from orchestrator.errors import EXIT_CODES
from orchestrator.taxonomy import taxonomy
from scripts.reference import DOCS, ROOT, TEXTS

ROW = re.compile(r"^\| `\w+` \|.*\|  \|$", re.MULTILINE)
"""A key of which nothing is said."""


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_committed_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == TEXTS[name](), "run `python -m scripts.reference`"


def test_every_key_of_the_configuration_has_a_meaning() -> None:
    assert ROW.findall(TEXTS[f"{DOCS}/configuration.md"]()) == []
    keys = json.loads(TEXTS["orchestrator/completing/words.json"]())["keys"]
    assert [key for key, known in keys.items() if not known["says"]] == []


def test_every_command_exit_code_and_category_has_its_place() -> None:
    commands, codes, categories = (
        TEXTS[f"{DOCS}/{name}.md"]() for name in ("cli", "exit-codes", "failure-categories")
    )
    assert all(f"\n## {command}\n" in commands for command in COMMANDS)
    assert all(f"| {code} |" in codes for code in EXIT_CODES)
    assert all(f"\n## {category}\n" in categories for category in taxonomy().categories)
