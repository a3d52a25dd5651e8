"""What runs told of one question over time: passed last, changed by, flaky. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from packaging.version import InvalidVersion, Version

from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Expectation
from orchestrator.concluded import facts
from orchestrator.concluded.facts import Difference, Facts
from orchestrator.concluded.judge import Verdict, judge
from orchestrator.concluded.kinds import Known
from orchestrator.concluded.record import Record
from orchestrator.taxonomy import says_nothing_of_vllm


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What one run tells of one cell."""

    run: str
    cell_id: str
    fingerprint: str | None
    """The same for cells that ask the same. None: what was asked can't be read."""

    record: Record | None
    """None: there is none of the cell."""

    cell: Cell | None
    is_last: bool = True
    """Whether no later record of the same run counts instead."""

    @property
    def verdict(self) -> Verdict:
        return self.record.verdict if self.record else Verdict.NOT_RUN

    @property
    def category(self) -> str | None:
        return self.record.judgement.category if self.record else None

    @property
    def question(self) -> str:
        """hardware/model/backend, as conf/ called it."""
        return cell_ids.question(self.cell_id)

    @property
    def build(self) -> str:
        return cell_ids.build(self.cell_id)

    @property
    def vllm_version(self) -> str | None:
        return self.record.build.vllm_version if self.record and self.record.build else None

    @property
    def is_own_try(self) -> bool:
        """Whether its run made it, and did not keep another's."""
        record = self.record
        return record is not None and record.attempt is not None and record.kept_from is None

    @property
    def says_nothing(self) -> bool:
        """About vLLM."""
        failed = self.verdict is Verdict.FAILED
        return self.verdict is Verdict.NOT_RUN or (failed and says_nothing_of_vllm(self.category))

    @property
    def facts(self) -> Facts | None:
        return facts.facts(self.record)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One release answers otherwise than the one before it."""

    before: str
    after: str
    was: Entry
    now: Entry
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wavering:
    """Nothing that decides changed between these tries, but their verdicts did."""

    build: str
    digest: str
    tries: tuple[tuple[Entry, Verdict], ...]
    """With the verdict that each gets by the rules of today, the oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    names: tuple[str, ...]
    """hardware/model/backend, as conf/ has called them, the latest first."""

    entries: tuple[Entry, ...]
    """Of every build, the oldest first."""

    @property
    def last_passed(self) -> Entry | None:
        passed = (entry for entry in reversed(self.told) if entry.verdict is Verdict.PASSED)
        return next(passed, None)

    @property
    def told(self) -> tuple[Entry, ...]:
        """The last word of each run, without what it only kept of another that is here too."""
        runs = {entry.run for entry in self.entries}
        return tuple(
            entry
            for entry in self.entries
            if entry.is_last and not (entry.record and entry.record.kept_from in runs)
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(_steps(self.told))

    @property
    def wavering(self) -> tuple[Wavering, ...]:
        return tuple(_wavering(self.entries))


def timelines(entries: Iterable[Entry]) -> tuple[Timeline, ...]:
    """*entries* from the oldest to the latest; what asks the same stands together."""
    by_question: dict[str, list[Entry]] = {}
    for entry in entries:
        by_question.setdefault(entry.fingerprint or entry.question, []).append(entry)
    return tuple(
        Timeline(
            names=tuple(dict.fromkeys(entry.question for entry in reversed(found))),
            entries=tuple(found),
        )
        for found in by_question.values()
    )


def _steps(entries: Iterable[Entry]) -> Iterator[Step]:
    """The latest answer of each release, held against that of the release before it."""
    latest = {version: entry for entry in entries if (version := _release(entry))}
    for before, after in pairwise(sorted(latest)):
        was, now = latest[before], latest[after]
        if differences := _differences(was, now):
            yield Step(
                before=str(before),
                after=str(after),
                was=was,
                now=now,
                differences=tuple(differences),
            )


def _release(entry: Entry) -> Version | None:
    """Of a plain release that has answered; patches are nobody's release."""
    if entry.cell is None or entry.cell.build.patches or entry.cell.build.checkout:
        return None
    if entry.facts is None or entry.says_nothing or entry.vllm_version is None:
        return None
    try:
        return Version(entry.vllm_version)
    except InvalidVersion:
        return None


def _differences(was: Entry, now: Entry) -> list[Difference]:
    before, after = was.facts, now.facts
    return [] if before is None or after is None else [*facts.differences(before, after)]


def _wavering(entries: Iterable[Entry]) -> Iterator[Wavering]:
    """Also where a run tried again by itself, and it then passed."""
    alike: dict[tuple[str, str], list[Entry]] = {}
    for each in entries:
        if each.is_own_try and each.record and each.record.digest:
            key = each.record.digest, repr(_expected(each))
            alike.setdefault(key, []).append(each)
    for (digest, _), found in alike.items():
        tries = tuple((each, verdict) for each in found if (verdict := _verdict_today(each)))
        verdicts = {verdict for _, verdict in tries}
        if len(verdicts) > 1 or any(_failed_first(each) for each, _ in tries):
            yield Wavering(build=found[-1].build, digest=digest, tries=tries)


def _expected(entry: Entry) -> Expectation | None:
    return entry.cell.expectation if entry.cell else None


def _verdict_today(entry: Entry) -> Verdict | None:
    """None: the try says nothing of vLLM. That our rules changed makes no cell flaky."""
    if entry.says_nothing:
        return None
    record = entry.record
    if entry.cell and record and record.build and record.attempt:
        return judge(entry.cell, record.build, record.attempt).verdict
    return entry.verdict


def _failed_first(entry: Entry) -> bool:
    known = entry.cell and Known(cell=entry.cell, record=entry.record)
    return bool(known and known.failed_first and entry.verdict is Verdict.PASSED)
