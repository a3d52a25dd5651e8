"""One module per command; each has `parser()`, and `main(words)`, which returns the exit code."""

from orchestrator.asked.conf_files import nearest
from orchestrator.errors import ConfigError

COMMANDS = {
    "run": "a suite or chosen cells; then the matrix, and the gate's answer",
    "plan": "which cell would go where and why, and for how long; starts nothing",
    "nodes": "what this machine or a cluster has, and what is wrong with it",
    "submit": "run on a cluster, from a laptop, and follow it",
    "attach": "come back to a run that was submitted",
    "report": "the matrix again: terminal, pr, md, json, junit, github",
    "explain": "the whole story of one cell, and a command that runs it alone",
    "reproduce": "a shell script that shows the same without vllm-matrix",
    "issue": "an issue for vLLM's people, filled in from one cell",
    "compare": "what became of every cell since another run, or from one build to another",
    "history": "what all runs say of a cell: passed last, changed by, flaky; or SQL",
    "bisect": "which release, or commit of a checkout, changed what became of a cell",
    "gate": "may it ship?",
    "completion": "for bash, zsh and fish: Tab completes commands, runs, cells, choices",
    "help": "this text, or a command's",
}


def unknown(name: str) -> ConfigError:
    return ConfigError(
        f'there is no command "{name}"; commands: {", ".join(COMMANDS)}.'
        f"{nearest(name, [*COMMANDS])}"
    )
