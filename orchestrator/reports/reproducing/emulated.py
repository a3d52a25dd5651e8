"""
Of an emulated engine: plain vLLM would see that there is no card, so the script carries the
emulation, which needs nothing but Python and uv.
"""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from jobs.contract.builds import ProvisionedBuild
from jobs.node import alone
from orchestrator.asked import digests
from orchestrator.asked.cell_requests import cell_request
from orchestrator.asked.cells import Cell
from orchestrator.concluded.record import Record
from orchestrator.kept.ingredients import Ingredients, archive, our_code
from orchestrator.reports.reproducing import shell

NOWHERE = ProvisionedBuild(name="", digest="", python="", vllm_version="", torch_version="")


def about(cell: Cell) -> Iterator[str]:
    yield from shell.comment(
        f"It needs no {cell.hardware.product or cell.axis('hardware')}, and does not show what "
        "one does: vLLM's own start-up code runs in a process that believes it has the card, on "
        "tensors without storage. Plain vLLM would see that there is none, so this script "
        "carries the code of vllm-matrix that pretends it (Apache-2.0), and nothing else of it."
    )
    yield from shell.comment(
        "usage: sh SCRIPT [FOLDER]. All that it makes lies in the folder, 3 GiB of vLLM and "
        "torch among it; CACHE=FOLDER takes builds from a cache of vllm-matrix. It needs Python "
        "3.11 or newer as python3, or as PYTHON. Exits with 0 if vLLM does again what "
        "vllm-matrix saw, and with 1 if not."
    )


def steps(cell: Cell, record: Record, ingredients: Ingredients) -> Iterator[str]:
    yield from shell.steps(
        _tools(),
        _checkout(ingredients),
        _asked(cell, record),
        _code(record, ingredients),
        ['exec env PYTHONPATH="$folder/code" "$python" -m jobs.node.alone "$folder"'],
    )


def _tools() -> Iterator[str]:
    yield "python=${PYTHON:-python3}"
    yield "if ! command -v uv >/dev/null; then"
    yield '  "$python" -m venv tools'
    yield "  tools/bin/python -m pip install --quiet uv"
    yield "  PATH=$folder/tools/bin:$PATH"
    yield "fi"


def _checkout(ingredients: Ingredients) -> Iterator[str]:
    if ingredients.changed:
        yield from shell.comment("What the checkout changed in vLLM.")
        yield "mkdir -p checkout"
        yield from shell.unpacked("checkout", archive(ingredients.changed))


def _asked(cell: Cell, record: Record) -> Iterator[str]:
    request = cell_request(cell, NOWHERE, attempt=1, workdir="", cache="")
    build = dataclasses.asdict(cell.build)
    if cell.build.checkout:
        # Its files are those after the patches.
        build |= {"checkout": "checkout", "patches": []}
    asked = {
        "build": build,
        "probe": dataclasses.asdict(request.probe),
        "env": request.env,
        "deadlines": dataclasses.asdict(request.deadlines),
        "seen": [*alone.seen(_as_json(record.attempt))] if record.attempt else [],
    }
    yield from shell.comment("What is asked of vLLM and of the card, and what was seen.")
    yield from shell.here("cat >cell.json", json.dumps(asked, indent=1))


def _code(record: Record, ingredients: Ingredients) -> Iterator[str]:
    files = our_code()
    files |= {f"jobs/{path}": text.encode() for path, text in ingredients.models.items()}
    since = record.parts.get("probe") not in {None, digests.of_probe()}
    changed = ", which has changed since this record" if since else ""
    yield from shell.comment(f"The code of vllm-matrix that runs on a node{changed}.")
    yield "rm -rf code"
    yield "mkdir code"
    yield from shell.unpacked("code", archive(files))


def _as_json(attempt: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(attempt)))
    return plain
