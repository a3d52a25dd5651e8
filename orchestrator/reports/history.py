"""What runs told of cells over time: on a screen, and as data for other programs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.concluded.facts import Difference, Facts
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.timeline import Entry, Step, Timeline, Wavering
from orchestrator.discretion import plain
from orchestrator.kept.database import Answer
from orchestrator.reports.wording import NOTHING
from orchestrator.running.progress import STYLES

SHOWN = 20
"""Lines of one question on a screen, the latest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryRow:
    run: str
    cell: str
    at: str | None
    build: str
    vllm_version: str | None
    verdict: Verdict
    category: str | None
    reasons: tuple[str, ...]
    kept_from: str | None
    digest: str | None
    facts: Facts
    """What the engine came to, by name: outcome, backends, layout, runner."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    before: str
    """A release; *after* is the next one that was tried."""

    after: str
    was: Verdict
    now: Verdict
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TryRow:
    run: str
    at: str | None
    verdict: Verdict
    """By the rules of today."""

    failed_first: tuple[str, ...]
    """Failures of earlier attempts in that run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlakyRow:
    build: str
    digest: str
    tries: tuple[TryRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionRow:
    names: tuple[str, ...]
    """hardware/model/backend, as conf/ has called it, the latest first."""

    last_passed: EntryRow | None
    steps: tuple[StepRow, ...]
    flaky: tuple[FlakyRow, ...]
    entries: tuple[EntryRow, ...]
    """The oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    history_version: Literal[1] = 1
    questions: tuple[QuestionRow, ...]
    troubles: tuple[str, ...]
    """What could not be read."""


_adapter = pydantic.TypeAdapter(History)


def build(timelines: Iterable[Timeline], troubles: Iterable[str]) -> History:
    return History(questions=tuple(map(_question, timelines)), troubles=tuple(troubles))


def to_json(history: History) -> str:
    return _adapter.dump_json(history, indent=1).decode() + "\n"


def lines(question: QuestionRow, shown: int) -> Iterator[str]:
    """In short, for one cell's story."""
    for entry in question.entries[-shown:]:
        kind = f" ({entry.category})" if entry.category else ""
        yield f"{_time(entry.at)}  {entry.build}  {entry.verdict}{kind}  {entry.run}"
    yield from _answers(question)


def render(history: History) -> Group:
    return Group(*_parts(history))


def table(answer: Answer) -> Table:
    grid = Table(*(escape(_shown(column)) for column in answer.columns), box=None)
    for row in answer.rows:
        grid.add_row(*(Text(NOTHING if value is None else _shown(value)) for value in row))
    return grid


def as_data(answer: Answer) -> list[dict[str, Any]]:
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def _shown(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return str(plain(text))


def _question(timeline: Timeline) -> QuestionRow:
    passed = timeline.last_passed
    return QuestionRow(
        names=timeline.names,
        last_passed=_entry(passed) if passed else None,
        steps=tuple(map(_step, timeline.steps)),
        flaky=tuple(map(_flaky, timeline.wavering)),
        entries=tuple(map(_entry, timeline.told)),
    )


def _entry(entry: Entry) -> EntryRow:
    record = entry.record
    return EntryRow(
        run=entry.run,
        cell=entry.cell_id,
        at=record.at if record else None,
        build=entry.build,
        vllm_version=entry.vllm_version,
        verdict=entry.verdict,
        category=entry.category,
        reasons=record.judgement.reasons if record else ("there is no record of it",),
        kept_from=record.kept_from if record else None,
        digest=record.digest if record else None,
        facts=entry.facts or {},
    )


def _step(step: Step) -> StepRow:
    return StepRow(
        before=step.before,
        after=step.after,
        was=step.was.verdict,
        now=step.now.verdict,
        differences=step.differences,
    )


def _flaky(wavering: Wavering) -> FlakyRow:
    tries = (
        TryRow(
            run=entry.run,
            at=entry.record.at if entry.record else None,
            verdict=verdict,
            failed_first=entry.record.earlier if entry.record else (),
        )
        for entry, verdict in wavering.tries
    )
    return FlakyRow(build=wavering.build, digest=wavering.digest, tries=tuple(tries))


def _parts(history: History) -> Iterator[RenderableType]:
    for question in history.questions:
        yield _entries(question)
        yield from (Text(f"  {line}") for line in _answers(question))
        yield ""
    yield from (Text(f"not read: {plain(trouble)}", style="yellow") for trouble in history.troubles)


def _entries(question: QuestionRow) -> Table:
    name, *others = question.names
    title = f"{name} (also {', '.join(others)})" if others else name
    grid = Table(title=escape(title), title_justify="left", title_style="bold", box=None)
    for column in ("when", "run", "build", "vLLM", "verdict"):
        grid.add_column(column, no_wrap=column != "run")
    for column in ("target", "draft", "layout, runner"):
        grid.add_column(column)
    left_out = len(question.entries) - SHOWN
    if left_out > 0:
        grid.add_row(f"{left_out} earlier")
    for entry in question.entries[-SHOWN:]:
        grid.add_row(*_fields(entry))
    return grid


def _fields(entry: EntryRow) -> Sequence[RenderableType]:
    kind = f" ({entry.category})" if entry.category else ""
    layout = [entry.facts.get("KV layout"), entry.facts.get("runner")]
    return [
        _time(entry.at),
        entry.run,
        entry.build,
        entry.vllm_version or NOTHING,
        Text(f"{entry.verdict}{kind}", style=STYLES[entry.verdict]),
        Text(_name(entry.facts.get("target attention"))),
        Text(_name(entry.facts.get("draft attention"))),
        " ".join(filter(None, layout)) or NOTHING,
    ]


def _answers(question: QuestionRow) -> Iterator[str]:
    if (passed := question.last_passed) is None:
        yield "never passed"
    else:
        version = f", vLLM {passed.vllm_version}" if passed.vllm_version else ""
        yield f"last passed {_time(passed.at)} with {passed.build}{version} ({passed.run})"
    for step in question.steps:
        yield f"changed {step.before} → {step.after}: {'; '.join(map(str, step.differences))}"
    for flaky in question.flaky:
        count = Counter(each.verdict for each in flaky.tries)
        counted = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
        again = sum(bool(each.failed_first) for each in flaky.tries)
        helped = f", {again} of them only at another attempt" if again else ""
        first, last = flaky.tries[0], flaky.tries[-1]
        yield (
            f"flaky with {flaky.build}: {counted}{helped}, from {_time(first.at)} to "
            f"{_time(last.at)}, although nothing that decides had changed"
        )


def _time(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else NOTHING


def _name(fact: str | None) -> str:
    """Without the class: `FLASH_ATTN (FlashAttentionBackend)`."""
    return ", ".join(part.split(" ", 1)[0] for part in fact.split(", ")) if fact else NOTHING
