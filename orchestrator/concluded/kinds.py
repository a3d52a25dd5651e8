"""Of which kind a change is, of a cell and of each of its requests. Pure."""

from dataclasses import dataclass, replace

from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Expectation, FieldName, RequestVerdict
from orchestrator.asked.policies import ChangeKind
from orchestrator.concluded.facts import Difference, differences, facts
from orchestrator.concluded.judge import Verdict, judge
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.record import Record
from orchestrator.concluded.requests import Request
from orchestrator.taxonomy import says_nothing_of_vllm, taxonomy

UNCOMPARED = (
    ChangeKind.MISPREDICTED,
    ChangeKind.INFRASTRUCTURE,
    ChangeKind.FLAKY,
    ChangeKind.NO_BASELINE,
)
"""Kinds of a cell that say it all: nothing follows from a single request of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A cell, and what is known of it."""

    cell: Cell
    record: Record | None
    mispredicted: tuple[str, ...] = ()
    """How a real card differs from it."""

    @property
    def verdict(self) -> Verdict:
        return Verdict.NOT_RUN if self.record is None else self.record.verdict

    @property
    def category(self) -> str | None:
        return None if self.record is None else self.record.judgement.category

    @property
    def requests(self) -> dict[FieldName, Request]:
        return {} if self.record is None else self.record.judgement.requests

    @property
    def reasons(self) -> tuple[str, ...]:
        return ("there is no record of it",) if not self.record else self.record.judgement.reasons

    @property
    def says_nothing(self) -> bool:
        failed = self.verdict is Verdict.FAILED and says_nothing_of_vllm(self.category)
        return failed or self.verdict is Verdict.NOT_RUN

    @property
    def failed_first(self) -> tuple[str, ...]:
        """Failures of earlier attempts that may have been vLLM's own."""
        return tuple(
            why
            for why in (self.record.earlier if self.record else ())
            if (category := why.partition(":")[0]) in taxonomy().categories
            and not says_nothing_of_vllm(category)
        )

    def held_against(self, expectation: Expectation) -> "Known":
        """With the verdict that it gets where this is expected of it."""
        record = self.record
        if expectation == self.cell.expectation or record is None:
            return self
        if record.build is None or record.attempt is None:
            return self
        cell = replace(self.cell, expectation=expectation)
        judgement = judge(cell, record.build, record.attempt)
        return replace(self, cell=cell, record=replace(record, judgement=judgement))


def known(matrix: Matrix, cell: Cell) -> Known:
    mispredicted = tuple(str(each) for each in matrix.disagreements if each.cell_id == cell.id)
    return Known(cell=cell, record=matrix.record(cell), mispredicted=mispredicted)


def of_cell(then: Known | None, now: Known) -> ChangeKind:
    if now.mispredicted:
        return ChangeKind.MISPREDICTED
    if now.says_nothing:
        return ChangeKind.INFRASTRUCTURE
    if now.failed_first and now.verdict is Verdict.PASSED:
        return ChangeKind.FLAKY
    if then is None or then.says_nothing:
        return ChangeKind.NO_BASELINE
    if is_same_try(then, now) and then.verdict is not now.verdict:
        return ChangeKind.FLAKY
    return _turn(
        good_then=then.verdict is Verdict.PASSED,
        good_now=now.verdict is Verdict.PASSED,
        drifted=bool(what_differs(then, now)),
    )


def of_request(
    then: Known | None, now: Known, field: FieldName, kind: ChangeKind
) -> ChangeKind | None:
    """
    *kind* is the cell's, and the request's as well where it was not seen twice. None: nothing
    was asked, and what vLLM chose was not seen twice.
    """
    before, after = _seen(then, field), _seen(now, field)
    if kind in UNCOMPARED or before is None or after is None:
        return kind if _is_asked(then, field) or _is_asked(now, field) else None
    return _turn(
        good_then=_is_good(before, now.cell.expectation, field),
        good_now=_is_good(after, now.cell.expectation, field),
        drifted=(before.verdict, before.got) != (after.verdict, after.got),
    )


def what_differs(then: Known | None, now: Known) -> tuple[Difference, ...]:
    """Of what was seen; nothing where only one of the two shows anything."""
    was, is_ = facts(then.record if then else None), facts(now.record)
    if was is None or is_ is None:
        return ()
    return tuple(differences(was, is_))


def is_same_try(then: Known, now: Known) -> bool:
    """Whether nothing has changed that decides what the cell does."""
    one, other = then.record, now.record
    return bool(one and other and one.digest and one.digest == other.digest)


def _turn(*, good_then: bool, good_now: bool, drifted: bool) -> ChangeKind:
    if good_then and good_now:
        return ChangeKind.DRIFT if drifted else ChangeKind.UNCHANGED
    if good_then:
        return ChangeKind.REGRESSED
    return ChangeKind.FIXED if good_now else ChangeKind.BROKEN_BEFORE


def _seen(known: Known | None, field: FieldName) -> Request | None:
    request = known.requests.get(field) if known else None
    return None if request and request.verdict is RequestVerdict.UNSEEN else request


def _is_asked(known: Known | None, field: FieldName) -> bool:
    request = known.requests.get(field) if known else None
    return request is not None and request.asked is not None


def _is_good(request: Request, expectation: Expectation, field: FieldName) -> bool:
    fine = expectation.requests.get(field)
    return request.kept if fine is None else request.verdict in fine
