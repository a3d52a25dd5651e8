"""Where text for people goes: as wide as their terminal, or wide enough for a log file."""

from rich.console import Console

LOG_WIDTH = 160


def screen() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)
