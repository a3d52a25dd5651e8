"""What lies in this folder: runs, their cells, and what was submitted."""

import json
from collections.abc import Sequence
from pathlib import Path

RUNS = Path("runs")
LATEST = "latest"
MANY = 60
"""Of more cells, the next part of their ids is told."""


def runs(prefix: str) -> dict[str, str]:
    """With a colon behind one, its builds."""
    run, colon, _ = prefix.partition(":")
    if colon:
        builds = {each.rpartition("/")[2] for each in _ids(run)}
        return {f"{run}:{build}": "" for build in sorted(builds)}
    names = [path.name for path in _newest_first()]
    return {LATEST: names[0] if names else "", **dict.fromkeys(names, "")}


def cells(words: Sequence[str], prefix: str) -> dict[str, str]:
    """Of the runs that *words* name, or else of the newest."""
    named = words or [LATEST]
    ids = [each for word in named for each in _ids(word) if each.startswith(prefix)]
    if len(ids) > MANY:
        ids = [_next_part(each, prefix) for each in ids]
    return dict.fromkeys(ids, "")


def submissions() -> dict[str, str]:
    return {file.stem: "" for file in (RUNS / ".submissions").glob("*.json")}


def folders(prefix: str) -> dict[str, str]:
    return {path: "" for path in files(prefix) if path.endswith("/")}


def files(prefix: str) -> dict[str, str]:
    """As they are written behind *prefix*, with a slash behind folders."""
    begun = prefix.rpartition("/")[0] + "/" if "/" in prefix else ""
    there = Path(begun or ".").expanduser()
    names = sorted(there.iterdir()) if there.is_dir() else []
    shown = [path for path in names if not path.name.startswith(".")]
    return {f"{begun}{path.name}{'/' if path.is_dir() else ''}": "" for path in shown}


def _newest_first() -> list[Path]:
    found = [file.parent for file in RUNS.glob("*/run.json")]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _ids(run: str) -> list[str]:
    named = _newest_first()[:1] if run == LATEST else [Path(run), RUNS / run]
    for path in named:
        if (path / "run.json").is_file():
            told = json.loads((path / "run.json").read_text())
            return [str(cell["id"]) for cell in told["cells"]]
    return []


def _next_part(cell_id: str, prefix: str) -> str:
    end = cell_id.find("/", len(prefix))
    return cell_id if end < 0 else cell_id[: end + 1]
