"""What became of every cell since the gate's baseline, and from one build to a later one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from packaging.version import InvalidVersion, Version

from orchestrator.asked.policies import ChangeKind
from orchestrator.concluded.comparison import CellChange, Side, compare, of_build
from orchestrator.concluded.matrix import Matrix
from orchestrator.reports import difference
from orchestrator.reports.difference import ComparisonRow


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    cell: str
    kind: str
    lines: tuple[str, ...]
    """As `compare` has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    before: str
    after: str
    build: str | None
    """Whose cells are compared; None: those of the whole run."""

    sentence: str
    changed: tuple[Changed, ...]
    """What is not among them is unchanged."""

    gone: tuple[str, ...]
    """Cells that nobody asks any more."""


def told(matrix: Matrix, with_baseline: ComparisonRow | None) -> Iterator[Differences]:
    """With the gate's baseline, if it has one, and of every two builds, the earlier vLLM first."""
    if with_baseline is not None:
        yield _differences(with_baseline, with_baseline.base, with_baseline.candidate, None)
    run = Side(name="this run", matrix=matrix)
    sides = [(build, of_build(run, build)) for build in _builds(matrix)]
    for (before, base), (after, candidate) in combinations(sides, 2):
        compared = difference.row(compare(base, candidate), candidate.matrix)
        yield _differences(compared, before, after, after)


def _differences(
    compared: ComparisonRow, before: str, after: str, build: str | None
) -> Differences:
    return Differences(
        before=before,
        after=after,
        build=build,
        sentence=compared.sentence,
        changed=tuple(
            _changed(change) for change in compared.cells if change.kind is not ChangeKind.UNCHANGED
        ),
        gone=compared.gone,
    )


def _changed(change: CellChange) -> Changed:
    return Changed(cell=change.cell_id, kind=str(change.kind), lines=tuple(difference.said(change)))


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
