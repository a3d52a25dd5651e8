"""
Whether one build is faster than another. Pure.

Rounds are compared in pairs, the first of one build with the first of the other, as they took
turns on the same node. Of each pair the logarithm of the ratio is taken; the interval is Student's,
of the mean of these. There is a verdict only where the interval leaves no doubt.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobs.contract.seen import SpeedSample
from orchestrator.asked.config import Speed
from orchestrator.asked.policies import ChangeKind
from orchestrator.concluded import student
from orchestrator.concluded.record import Round

FEWEST = 3
"""Rounds of which anything can be said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    name: str
    unit: str
    more_is_better: bool
    of: Callable[[Round], float | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeedChange:
    """What became of one metric. Parts are of what it was: 0.02 is two per cent more."""

    metric: str
    unit: str
    kind: ChangeKind
    before: float
    """The median of all rounds."""

    after: float
    change: float | None = None
    low: float | None = None
    """The interval of the change, at the confidence that the suite asks for."""

    high: float | None = None
    rounds: int
    why: str = ""
    """There is no verdict."""

    def __str__(self) -> str:
        said = f"{self.metric} {_short(self.before)} → {_short(self.after)} {self.unit}"
        if self.change is None or self.low is None or self.high is None:
            return f"{said} ({self.why})"
        interval = f"{self.low * 100:+.1f} to {self.high * 100:+.1f} %, {self.rounds} rounds"
        return (
            f"{said}, {self.change * 100:+.1f} % ({interval}{f'; {self.why}' if self.why else ''})"
        )


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def changes(then: Sequence[Round], now: Sequence[Round], asked: Speed) -> tuple[SpeedChange, ...]:
    """Of each metric that both sides have."""
    return tuple(_changes(then, now, asked))


def kind_with(kind: ChangeKind, found: Sequence[SpeedChange]) -> ChangeKind:
    """Of a cell that would be of *kind* if nobody looked at its speed."""
    if kind not in {ChangeKind.UNCHANGED, ChangeKind.DRIFT}:
        return kind
    seen = {change.kind for change in found}
    for telling in (ChangeKind.REGRESSED, ChangeKind.NO_VERDICT):
        if telling in seen:
            return telling
    return ChangeKind.FIXED if kind is ChangeKind.UNCHANGED and ChangeKind.FIXED in seen else kind


def _of_samples(value: Callable[[SpeedSample], float | None]) -> Callable[[Round], float | None]:
    def median(found: Round) -> float | None:
        values = [one for sample in found.speed.samples if (one := value(sample)) is not None]
        return statistics.median(values) if values else None

    return median


METRICS = (
    Metric(
        name="throughput",
        unit="tokens/s",
        more_is_better=True,
        of=_of_samples(lambda sample: sample.tokens_per_s),
    ),
    Metric(
        name="time to first token",
        unit="ms",
        more_is_better=False,
        of=_of_samples(lambda sample: sample.ttft_s * 1000),
    ),
    Metric(
        name="acceptance length",
        unit="tokens",
        more_is_better=True,
        of=_of_samples(lambda sample: sample.acceptance_length),
    ),
    Metric(
        name="KV cache",
        unit="blocks",
        more_is_better=True,
        of=lambda found: found.kv_blocks,
    ),
    Metric(
        name="device memory",
        unit="MiB",
        more_is_better=False,
        of=lambda found: found.speed.device_peak_mib,
    ),
    Metric(
        name="host memory",
        unit="MiB",
        more_is_better=False,
        of=lambda found: found.host_mib,
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One metric of one cell, over its rounds."""

    metric: str
    unit: str
    median: float
    least: float
    most: float
    rounds: int

    def __str__(self) -> str:
        span = "" if self.least == self.most else f" ({_short(self.least)} to {_short(self.most)})"
        return f"{self.metric} {_short(self.median)} {self.unit}{span}"


def measured(rounds: Sequence[Round]) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            metric=metric.name,
            unit=metric.unit,
            median=statistics.median(values),
            least=min(values),
            most=max(values),
            rounds=len(values),
        )
        for metric in METRICS
        if (values := _values(metric, rounds))
    )


def _changes(then: Sequence[Round], now: Sequence[Round], asked: Speed) -> Iterator[SpeedChange]:
    apart = _why_apart(then, now)
    for metric in METRICS:
        before, after = _values(metric, then), _values(metric, now)
        if before and after:
            yield _change(metric, before, after, asked, apart)


def _values(metric: Metric, rounds: Sequence[Round]) -> list[float]:
    """Of every round, or none at all: a logarithm wants something."""
    values = [metric.of(found) for found in rounds]
    positive = [value for value in values if value is not None and value > 0]
    return positive if len(positive) == len(values) else []


def _why_apart(then: Sequence[Round], now: Sequence[Round]) -> str:
    """Why the two can't be compared round by round."""
    both = [*then, *now]
    if len({found.session for found in both}) > 1 or not _took_turns(then, now):
        return "they did not take turns: measure both builds in one run"
    if len({found.node for found in both}) > 1:
        return "they were measured on several nodes"
    if min(len(then), len(now)) < FEWEST:
        return f"fewer than {FEWEST} rounds of each"
    return ""


def _took_turns(then: Sequence[Round], now: Sequence[Round]) -> bool:
    """Whether no round of one lies between the two of an earlier or later pair."""
    pairs = [sorted([a.turn, b.turn]) for a, b in zip(then, now, strict=False)]
    turns = [turn for pair in pairs for turn in pair]
    return turns == sorted(turns)


def _change(
    metric: Metric, before: Sequence[float], after: Sequence[float], asked: Speed, apart: str
) -> SpeedChange:
    logs = [math.log(b / a) for a, b in zip(before, after, strict=False)]
    was, is_ = statistics.median(before), statistics.median(after)
    if apart:
        return SpeedChange(
            metric=metric.name,
            unit=metric.unit,
            kind=ChangeKind.NO_VERDICT,
            before=was,
            after=is_,
            rounds=len(logs),
            why=apart,
        )
    mean = statistics.fmean(logs)
    half = _half_width(logs, asked.confidence)
    low, change, high = (math.expm1(each) for each in (mean - half, mean, mean + half))
    kind = _kind(low, change, high, asked.margin, more_is_better=metric.more_is_better)
    return SpeedChange(
        metric=metric.name,
        unit=metric.unit,
        kind=kind,
        before=was,
        after=is_,
        change=change,
        low=low,
        high=high,
        rounds=len(logs),
        why="noise is larger than the effect" if kind is ChangeKind.NO_VERDICT else "",
    )


def _half_width(logs: Sequence[float], confidence: float) -> float:
    freedom = len(logs) - 1
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return student.quantile((1 + confidence) / 2, freedom) * error


def _kind(
    low: float, change: float, high: float, margin: float, *, more_is_better: bool
) -> ChangeKind:
    if -margin <= low and high <= margin:
        return ChangeKind.UNCHANGED
    if low <= 0 <= high or abs(change) < margin:
        return ChangeKind.NO_VERDICT
    return ChangeKind.FIXED if (change > 0) is more_is_better else ChangeKind.REGRESSED
