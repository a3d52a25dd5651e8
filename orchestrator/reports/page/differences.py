"""What became of every cell from an earlier build of the run to a later one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from packaging.version import InvalidVersion, Version

from orchestrator.asked.config import ChangeKind
from orchestrator.concluded.comparison import CellChange, Comparison, Side, compare, of_build
from orchestrator.concluded.matrix import Matrix
from orchestrator.reports import wording


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    cell: str
    base: str | None
    kind: str
    reason: str
    differs: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    before: str
    after: str
    changed: tuple[Changed, ...]
    """What is not among them is unchanged."""

    gone: tuple[str, ...]
    """Cells that nobody asks of the later build."""


def between_builds(matrix: Matrix) -> Iterator[Differences]:
    """Of every two builds, the one of the earlier vLLM first."""
    run = Side(name="this run", matrix=matrix)
    sides = [(build, of_build(run, build)) for build in _builds(matrix)]
    for (before, base), (after, candidate) in combinations(sides, 2):
        yield _told(before, after, compare(base, candidate))


def _told(before: str, after: str, comparison: Comparison) -> Differences:
    return Differences(
        before=before,
        after=after,
        changed=tuple(
            _changed(change)
            for change in comparison.cells
            if change.kind is not ChangeKind.UNCHANGED
        ),
        gone=comparison.gone,
    )


def _changed(change: CellChange) -> Changed:
    return Changed(
        cell=change.cell_id,
        base=change.base_id,
        kind=str(change.kind),
        reason=change.reason,
        differs=wording.differing(change.differences),
    )


def _builds(matrix: Matrix) -> Sequence[str]:
    """In the order of the run, but by version where it is known of all."""
    versions: dict[str, str | None] = {}
    for cell in matrix.cells:
        record = matrix.record(cell)
        known = record.build.vllm_version if record and record.build else None
        versions[cell.build.name] = versions.get(cell.build.name) or known
    try:
        return sorted(versions, key=lambda build: Version(versions[build] or ""))
    except InvalidVersion:
        return [*versions]
