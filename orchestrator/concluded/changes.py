"""What changed from one vLLM release to the next, card by card. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from packaging.version import InvalidVersion, Version

from orchestrator.asked import cell_ids
from orchestrator.concluded.comparison import Side, compare, of_build
from orchestrator.concluded.facts import Difference
from orchestrator.concluded.matrix import Matrix


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One question that two releases in a row answer differently."""

    card: str
    """`h100-emulated` where it is emulated."""

    model: str
    backend: str
    before: str
    """The earlier build."""

    after: str
    differences: tuple[Difference, ...]


def between_releases(matrix: Matrix) -> tuple[Change, ...]:
    """Every change, in the order of the releases; none where there is nothing to compare."""
    return tuple(
        change
        for before, after in pairwise(_releases(matrix))
        for change in _step(matrix, before, after)
    )


def _releases(matrix: Matrix) -> list[str]:
    """Builds without patches of our own or anybody's, the oldest vLLM first."""
    versions: dict[str, Version] = {}
    for cell in matrix.cells:
        record = matrix.record(cell)
        pure = not cell.build.patches and cell.build.checkout is None
        if pure and record is not None and record.build is not None:
            version = _version(record.build.vllm_version)
            if version is not None and version not in versions.values():
                versions.setdefault(cell.build.name, version)
    return sorted(versions, key=versions.__getitem__)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _step(matrix: Matrix, before: str, after: str) -> Iterator[Change]:
    run = Side(name="this run", matrix=matrix)
    for change in compare(of_build(run, before), of_build(run, after)).cells:
        if change.differences:
            card, model, backend, _ = cell_ids.parts(change.cell_id)
            yield Change(
                card=card,
                model=model,
                backend=backend,
                before=before,
                after=after,
                differences=change.differences,
            )
