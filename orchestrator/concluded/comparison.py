"""What became of every cell and every request since a baseline. Pure: two matrices."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from jobs.contract.builds import BuildSpec
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import FieldName
from orchestrator.asked.policies import ChangeKind
from orchestrator.concluded import kinds, speed
from orchestrator.concluded.facts import Difference
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.kinds import Known, known
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.questions import Questions, differing
from orchestrator.concluded.requests import Request
from orchestrator.concluded.speed import SpeedChange


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two that are compared: a run, or one build of it."""

    name: str
    matrix: Matrix


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """How one cell ended, in short."""

    verdict: Verdict
    category: str | None
    vllm_version: str | None
    """None where its build was never made ready."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestChange:
    kind: ChangeKind
    before: Request | None
    after: Request | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CellChange:
    cell_id: str
    base_id: str | None
    """The baseline's cell that asks the same."""

    kind: ChangeKind
    before: Answer | None
    after: Answer
    reason: str
    """Of the kind, for people; empty where there is nothing to add."""

    differences: tuple[Difference, ...] = ()
    """Of what was seen, whatever the kind; none where only one of the two shows anything."""

    requests: dict[FieldName, RequestChange] = field(default_factory=dict)
    speed: tuple[SpeedChange, ...] = ()
    """Of each metric, where speed was measured on both sides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    base: str
    candidate: str
    cells: tuple[CellChange, ...]
    """Every cell of the candidate, in its order."""

    gone: tuple[str, ...]
    """Cells of the baseline that nobody asks of the candidate: what became of them is unknown."""

    def of(self, kind: ChangeKind) -> tuple[CellChange, ...]:
        return tuple(change for change in self.cells if change.kind is kind)

    @property
    def has_common_ground(self) -> bool:
        """Whether the candidate asks anything that the baseline asked."""
        return any(change.base_id is not None for change in self.cells)


def compare(base: Side, candidate: Side) -> Comparison:
    """
    A baseline of one build is compared with every build of the candidate, one of several with
    those of the same name, or that are the same by another. Both sides are held against what is
    expected of the candidate.
    """
    baseline = _Baseline(base)
    now = (known(candidate.matrix, cell) for cell in candidate.matrix.cells)
    return Comparison(
        base=base.name,
        candidate=candidate.name,
        cells=tuple(_change(baseline, each) for each in now),
        gone=tuple(baseline.not_asked_by(candidate.matrix.cells)),
    )


def of_build(side: Side, build: str) -> Side:
    """That part of it."""
    cells = tuple(cell for cell in side.matrix.cells if cell.build.name == build)
    return Side(name=f"{side.name}:{build}", matrix=replace(side.matrix, cells=cells))


class _Baseline:
    def __init__(self, side: Side) -> None:
        self.side = side
        cells: dict[str, list[Cell]] = {}
        for cell in side.matrix.cells:
            cells.setdefault(cell.build.name, []).append(cell)
        self._builds = {build: Questions(its) for build, its in cells.items()}
        self._specs = {build: its[0].build for build, its in cells.items()}
        self._fitting: dict[str, str | None] = {}

    def counterpart(self, cell: Cell) -> Known | None:
        same = self.questions(cell).same(cell)
        return known(self.side.matrix, same) if same else None

    def questions(self, cell: Cell) -> Questions:
        """What the build of a cell of the candidate is to be compared with."""
        fitting = self._build(cell.build)
        return Questions(()) if fitting is None else self._builds[fitting]

    def not_asked_by(self, cells: Sequence[Cell]) -> Iterator[str]:
        for build, questions in self._builds.items():
            asked = (cell for cell in cells if self._build(cell.build) == build)
            yield from (cell.id for cell in questions.unasked(asked))

    def _build(self, build: BuildSpec) -> str | None:
        """The only one, the one of its name, or else one that is the same by another name."""
        if build.name not in self._fitting:
            alike = (name for name, spec in self._specs.items() if _same(spec, build))
            alone = next(iter(self._specs)) if len(self._specs) == 1 else None
            named = build.name if build.name in self._specs else None
            self._fitting[build.name] = alone or named or next(alike, None)
        return self._fitting[build.name]


def _same(one: BuildSpec, other: BuildSpec) -> bool:
    return replace(one, name=other.name) == other


def _change(baseline: _Baseline, now: Known) -> CellChange:
    found = baseline.counterpart(now.cell)
    then = found.held_against(now.cell.expectation) if found else None
    measured = _speed(then, now)
    kind = speed.kind_with(kinds.of_cell(then, now), measured)
    return CellChange(
        cell_id=now.cell.id,
        base_id=then.cell.id if then else None,
        kind=kind,
        before=_answer(then) if then else None,
        after=_answer(now),
        reason="; ".join([*_of_speed(kind, measured), *_reasons(baseline, then, now, kind)]),
        differences=kinds.what_differs(then, now),
        requests=_requests(then, now, kind),
        speed=measured,
    )


def _speed(then: Known | None, now: Known) -> tuple[SpeedChange, ...]:
    if now.cell.speed is None or then is None or not (then.record and now.record):
        return ()
    if {then.verdict, now.verdict} != {Verdict.PASSED}:
        return ()
    return speed.changes(then.record.rounds, now.record.rounds, now.cell.speed)


def _of_speed(kind: ChangeKind, measured: Iterable[SpeedChange]) -> Iterator[str]:
    """What made the cell of this kind."""
    return (str(each) for each in measured if each.kind is kind)


def _answer(cell: Known) -> Answer:
    build = cell.record.build if cell.record else None
    return Answer(
        verdict=cell.verdict,
        category=cell.category,
        vllm_version=build.vllm_version if build else None,
    )


def _requests(then: Known | None, now: Known, kind: ChangeKind) -> dict[FieldName, RequestChange]:
    before, after = then.requests if then else {}, now.requests
    turns = {field: kinds.of_request(then, now, field, kind) for field in {**before, **after}}
    return {
        field: RequestChange(kind=turn, before=before.get(field), after=after.get(field))
        for field, turn in turns.items()
        if turn is not None
    }


def _reasons(
    baseline: _Baseline, then: Known | None, now: Known, kind: ChangeKind
) -> Iterable[str]:
    match kind:
        case ChangeKind.MISPREDICTED:
            return now.mispredicted
        case ChangeKind.FLAKY if now.failed_first:
            return [f"it passed only after another attempt: {why}" for why in now.failed_first]
        case ChangeKind.FLAKY:
            return ("nothing that decides has changed, but its verdict has", *now.reasons)
        case ChangeKind.NO_BASELINE:
            return (_why_no_baseline(baseline, then, now), *now.reasons)
        case ChangeKind.FIXED if then is not None:
            return [f"it was: {why}" for why in then.reasons]
        case _:
            return now.reasons


def _why_no_baseline(baseline: _Baseline, then: Known | None, now: Known) -> str:
    if then is not None:
        return f"{then.cell.id} says nothing about vLLM: {'; '.join(then.reasons)}"
    name = baseline.side.name
    if not baseline.side.matrix.cells:
        return f"there is {name}"
    namesake = baseline.questions(now.cell).namesake(now.cell)
    if namesake is None:
        return f"no cell of {name} asks this"
    return (
        f"{namesake.id} of {name} asks something else: {', '.join(differing(namesake, now.cell))}"
    )
