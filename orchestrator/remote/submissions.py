"""What was submitted from here, so that one can come back to it."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import ConfigError

REMEMBERED = ".submissions"


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    id: str
    address: str
    on_interrupt: str


def remember(submission: Submission, runs: Path) -> None:
    folder = runs / REMEMBERED
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {
        "id": submission.id,
        "address": submission.address,
        "on_interrupt": submission.on_interrupt,
        "at": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    (folder / f"{submission.id}.json").write_text(json.dumps(told))


def remembered(runs: Path, submission: str | None, address: str | None) -> Submission:
    """The one of that id, or the newest that was submitted from here."""
    files = sorted((runs / REMEMBERED).glob("*.json"), key=lambda file: file.stat().st_mtime)
    known = {file.stem: file for file in files}
    if submission is None and not known:
        raise ConfigError(f"nothing was submitted from here: {runs / REMEMBERED} is empty")
    found = known.get(submission) if submission else files[-1]
    if found is None:
        if address is None:
            raise ConfigError(f"{submission} was not submitted from here: add --address URL")
        return Submission(id=str(submission), address=address, on_interrupt="ask")
    told = json.loads(found.read_text())
    return Submission(
        id=told["id"], address=address or told["address"], on_interrupt=told["on_interrupt"]
    )
