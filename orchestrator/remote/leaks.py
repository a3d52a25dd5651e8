"""Secrets that stand in files which would go to a cluster, where everybody may read them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.secret_shapes import named
from jobs.secrets import redactor
from orchestrator.remote.working_dir import sent

CODE = {".diff", ".patch", ".py"}
"""Which assign to many a *token* what is no secret."""


def places(folder: Path, names: Sequence[str] = ()) -> Iterator[str]:
    """File and line of each; *names* are further ones that hold secrets."""
    for file in sent(folder):
        lines = file.read_text(errors="replace").splitlines()
        for number in _hiding(lines, names, is_code=file.suffix in CODE):
            yield f"{file}, line {number}"


def _hiding(lines: Sequence[str], names: Sequence[str], *, is_code: bool) -> Iterator[int]:
    spoken = [] if is_code else [line for line in lines if not line.lstrip().startswith("#")]
    said = [{name: value} for line in spoken for name, value in named(line)]
    secret = redactor({"here": os.environ, "said": said}, names)
    shown = secret.code if is_code else secret.text
    yield from (number for number, line in enumerate(lines, start=1) if shown(line) != line)
