"""What engines printed, as the run kept it."""

from pathlib import Path

from orchestrator import discretion


def tail(run: Path, log: str, lines: int) -> list[str]:
    """The last lines; none where the log is gone."""
    file = run / log
    if not file.is_file():
        return []
    return str(discretion.plain(file.read_text(errors="replace"))).splitlines()[-lines:]
