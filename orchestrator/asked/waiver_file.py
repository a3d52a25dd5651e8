"""Known exceptions in a file of their own: `waivers:`, as in conf/gate."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pydantic
import yaml

from jobs.contract.terms import STRICT
from orchestrator.asked.conf_files import ConfFiles, nearest
from orchestrator.asked.explaining import explain
from orchestrator.asked.policies import Waiver
from orchestrator.taxonomy import taxonomy

WITHOUT_CATEGORY = ("no verdict", "flaky", "gone", "drift", "no baseline")
"""Verdicts of what passes, or is not there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverFile:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    waivers: tuple[Waiver, ...]


_adapter = pydantic.TypeAdapter(WaiverFile)


def read(name: str, files: ConfFiles) -> tuple[tuple[Waiver, ...], list[str]]:
    """Its waivers, or every mistake in it."""
    path = _found(name, files)
    if path is None:
        looked = ", ".join(map(str, (*files.folders, Path.cwd())))
        return (), [f"gate.waiver_files: there is no file {name} (looked in {looked})"]
    try:
        raw = yaml.safe_load(path.read_text())
        waivers = _adapter.validate_python(raw).waivers
    except yaml.YAMLError as error:
        return (), [f"{name}: {' '.join(str(error).split())}"]
    except (OSError, UnicodeError) as error:
        return (), [f"{name}: can't be read: {error}"]
    except pydantic.ValidationError as invalid:
        return (), [_explained(mistake, name, raw) for mistake in invalid.errors()]
    wrong = (of_one(each, f"{name}: waivers.{n}") for n, each in enumerate(waivers))
    return waivers, [mistake for found in wrong for mistake in found]


def of_one(waiver: Waiver, place: str) -> Iterator[str]:
    """What no single key of it shows."""
    known = sorted(taxonomy().categories)
    if waiver.category is None and waiver.verdict is None:
        yield f"{place}: says neither which category nor which verdict it excuses"
    if waiver.category is not None and waiver.category not in known:
        yield (
            f'{place}.category: there is no category "{waiver.category}"; '
            f"allowed: {', '.join(known)}.{nearest(waiver.category, known)}"
        )
    if waiver.category is not None and waiver.verdict in WITHOUT_CATEGORY:
        yield f"{place}: what is {waiver.verdict} has no category: leave out one of the two"


def _found(name: str, files: ConfFiles) -> Path | None:
    beside = Path(name).expanduser()
    return files.find(name) or (beside if beside.is_file() else None)


def _explained(mistake: Any, name: str, raw: Any) -> str:
    if not isinstance(raw, dict):
        return f"{name}: is not a file of waivers: it has to begin with the key `waivers:`"
    return explain(mistake, lambda *path: f"{name}: {'.'.join(path)}", _adapter)
