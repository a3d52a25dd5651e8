"""
What a shell is told when somebody presses Tab.

argcomplete speaks with the shells. What may stand in a place comes from words.json, which
`python -m scripts.reference` makes from commands and configuration, and from the folders
here: the commands themselves take a second to import.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

from orchestrator.completing.command_line import candidates

WORDS = Path(__file__).with_name("words.json")


class _Finder(CompletionFinder):
    def _get_completions(
        self, words: list[str], prefix: str, quote: str, break_at: int | None
    ) -> list[str]:
        """In place of asking a parser."""
        found = candidates(json.loads(WORDS.read_text()), words[1:], prefix)
        self._display_completions: dict[str, Any] = found
        return list(self.quote_completions([*found], quote, break_at))


def answer() -> None:
    """Ends the process."""
    _Finder()(ArgumentParser())


def code(shell: str) -> str:
    """What the shell has to run once."""
    return shellcode(["vllm-matrix"], shell=shell)
