"""
One cell on this machine, without Ray or an orchestrator: `python -m jobs.node.alone FOLDER`.

`cell.json` in the folder says what is asked, and what was seen before. Exits with 0 if the same
is seen again.
"""

import dataclasses
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.contract.asked import CellRequest, Deadlines, request_from_json
from jobs.contract.attempts import Placement
from jobs.contract.builds import BuildSpec, Patch
from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode, Isolation, Phase
from jobs.node.builds.errors import BuildError
from jobs.node.builds.provision import provision
from jobs.node.errors import NodeError
from jobs.node.run_cell import run_cell


def main(folder: Path) -> int:
    asked = json.loads((folder / "cell.json").read_text())
    cache = Path(os.environ.get("CACHE") or folder / "cache")
    try:
        attempt = _attempt(asked, folder, cache)
    except (BuildError, NodeError) as error:
        _say(f"it can't be tried here: {error}")
        return 2
    found = [*seen(attempt)]
    for line in found:
        _say(line)
    same = found == asked["seen"]
    _say("the same as vllm-matrix saw" if same else f"vllm-matrix saw: {asked['seen']}")
    if not same:
        _say(f"its log: {attempt['log']}")
    return 0 if same else 1


def seen(attempt: Mapping[str, Any]) -> Iterator[str]:
    """What an attempt, as JSON, came to."""
    report = attempt["report"]
    failure = report and report["failure"]
    if failure:
        yield f"failed in {failure['phase']}: {failure['chain'][-1]['type']}"
    elif report is None or not report["ready"]:
        yield f"ended in {attempt['phase']}"
    if report is None:
        return
    for owner in ("target", "draft"):
        for group in report[owner]:
            yield f"{owner}: {group['backend']} ({group['class_path']}), {group['layers']} layers"
    for name in ("runner", "kv_layout"):
        if report["engine"][name]:
            yield f"{name}: {report['engine'][name]}"


def _attempt(asked: Mapping[str, Any], folder: Path, cache: Path) -> dict[str, Any]:
    build = provision(_spec(asked["build"], folder), cache, _say)
    probe = request_from_json(json.dumps(asked["probe"]))
    deadlines = asked["deadlines"]
    request = CellRequest(
        probe=dataclasses.replace(probe, sources=tuple(build.sources)),
        build=build,
        env=asked["env"],
        isolation=Isolation.COLD,
        deadlines=Deadlines(
            attempt_s=deadlines["attempt_s"],
            phases_s={Phase(phase): s for phase, s in deadlines["phases_s"].items()},
            quiet_s=deadlines["quiet_s"],
        ),
        workdir=str(folder / "cell"),
        cache=str(cache),
    )
    attempt: dict[str, Any] = json.loads(run_cell(request, Placement(node=platform.node())))
    return attempt


def _spec(asked: Mapping[str, Any], folder: Path) -> BuildSpec:
    """A checkout lies beside `cell.json`."""
    lists = ("extra_requirements", "exclude", "overrides")
    return BuildSpec(
        **{
            **asked,
            **{name: tuple(asked[name]) for name in lists},
            "engine_mode": EngineMode(asked["engine_mode"]),
            "packages": {vendor: _packages(each) for vendor, each in asked["packages"].items()},
            "patches": tuple(Patch(**patch) for patch in asked["patches"]),
            "checkout": asked["checkout"] and str(folder / asked["checkout"]),
        }
    )


def _packages(asked: Mapping[str, Any]) -> PackageSet:
    return PackageSet(
        **{**asked, "installed": tuple(asked["installed"]), "assumed": tuple(asked["assumed"])}
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
