"""What the tutorials have people type is understood; tests/ray/test_tutorials.py types it."""

from pathlib import Path

import pytest

from orchestrator.commands import COMMANDS
from orchestrator.commands.help import of
from tests.tutorials import TUTORIALS, steps

pytestmark = pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)


def test_there_is_something_to_type_and_to_see(tutorial: Path) -> None:
    found = steps(tutorial)

    assert sum(len([*step.commands()]) for step in found) >= 4
    assert sum(bool(step.shown) for step in found) >= 3


def test_every_command_and_flag_exists(tutorial: Path) -> None:
    for step in steps(tutorial):
        for name, *words in step.commands():
            assert name in COMMANDS
            of(name).parse_intermixed_args(words)
