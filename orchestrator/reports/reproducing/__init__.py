"""A shell script with which somebody else gets what a cell got, without vllm-matrix."""

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.contract.terms import EngineMode
from jobs.secrets import MASK
from orchestrator.asked.cell_requests import engine_args
from orchestrator.asked.cells import Cell
from orchestrator.concluded.record import Record
from orchestrator.kept.ingredients import Ingredients
from orchestrator.reports.reproducing import emulated, plain, shell
from orchestrator.version import VERSION


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """One cell of a run, and what it was made of."""

    run: str
    cell: Cell
    record: Record
    ingredients: Ingredients
    standing: str
    """Its verdict, and why."""


def script(story: Story) -> str:
    return "\n".join(_lines(story)) + "\n"


def _lines(story: Story) -> Iterator[str]:
    cell = story.cell
    is_emulated = cell.engine_mode is EngineMode.EMULATED
    yield "#!/bin/sh"
    yield from shell.comment(f"{cell.id} of {story.run}: {story.standing}")
    yield "#"
    yield from (emulated if is_emulated else plain).about(cell)
    yield "#"
    yield from shell.comment(f"Written by vllm-matrix {VERSION}; seen on {story.record.at[:10]}.")
    yield "set -eu"
    yield from shell.steps(
        _folder(cell),
        _secrets(cell),
        (emulated if is_emulated else plain).steps(story.cell, story.record, story.ingredients),
    )


def _folder(cell: Cell) -> Iterator[str]:
    name = f"reproduce-{cell.id.replace('/', '-')}"
    yield f"folder=${{1:-{name}}}"
    yield 'mkdir -p "$folder"'
    yield 'cd "$folder"'
    yield "folder=$PWD"


def _secrets(cell: Cell) -> Iterator[str]:
    """Those of the environment are asked for by name, and what is of the arguments is filled in."""
    for name, value in {**cell.model.env, **cell.backend.env}.items():
        if MASK in value:
            yield f': "${{{name}:?is a secret, which this script does not have: set it}}"'
            yield f"export {name}"
    if MASK in str(engine_args(cell)):
        yield from shell.comment(f"Replace {MASK} below by the secret, and take this line out.")
        yield "echo 'this script lacks a secret of the arguments: see its comment' >&2; exit 2"
