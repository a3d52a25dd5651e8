"""Where text for people goes: as wide as their terminal, or wide enough for a log file."""

from rich.console import Console

LOG_WIDTH = 160


def screen() -> Console:
    # In what engines say, `:tada:` is not meant to be a picture.
    console = Console(emoji=False)
    return console if console.is_terminal else Console(width=LOG_WIDTH, emoji=False)
