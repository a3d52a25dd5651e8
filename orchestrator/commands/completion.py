"""What a shell runs once, so that Tab completes commands, runs, cells and what can be chosen."""

import sys
from collections.abc import Sequence

from orchestrator import completing
from orchestrator.commands.parsing import Parser
from orchestrator.errors import SHIPS

SHELLS = ("bash", "zsh", "fish")


def parser() -> Parser:
    words = Parser(
        "completion",
        __doc__,
        {
            "completion bash > ~/.local/share/bash-completion/completions/vllm-matrix": (
                "for good, where bash-completion is installed; or else >> ~/.bashrc"
            ),
            "completion zsh > ~/.zfunc/_vllm-matrix": (
                "with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc"
            ),
            "completion fish > ~/.config/fish/completions/vllm-matrix.fish": "for good",
        },
    )
    words.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return words


def main(words: Sequence[str]) -> int:
    sys.stdout.write(completing.code(parser().parse_args(words).shell))
    return SHIPS
