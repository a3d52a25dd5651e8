"""Is one build faster than another? Only where the interval leaves no doubt."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from jobs.contract.seen import SpeedSample, SpeedSeen
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Speed
from orchestrator.asked.policies import ChangeKind, Gate
from orchestrator.concluded import comparison, matrix, speed, student
from orchestrator.concluded.comparison import CellChange, Side
from orchestrator.concluded.gate import decide
from orchestrator.concluded.record import Record, Round
from orchestrator.concluded.speed import SpeedChange
from orchestrator.reports import difference, difference_forms
from tests.builders import a_build, a_cell, a_record, a_report, an_attempt, groups

ASKED = Speed()
THROUGHPUT, TTFT = "throughput", "time to first token"


def rounds(
    tokens_per_s: Sequence[float],
    *,
    first: int = 0,
    ttft_s: float = 0.01,
    session: str = "s",
    node: str = "n1",
    **more: object,
) -> tuple[Round, ...]:
    """Each second turn, from *first* on."""
    return tuple(
        Round(
            session=session,
            turn=2 * number + first,
            node=node,
            speed=SpeedSeen(samples=(SpeedSample(tokens_per_s=value, ttft_s=ttft_s, **more),)),  # type: ignore[arg-type]
        )
        for number, value in enumerate(tokens_per_s)
    )


def change(
    before: Sequence[float], after: Sequence[float], asked: Speed = ASKED, metric: str = THROUGHPUT
) -> SpeedChange:
    found = speed.changes(rounds(before), rounds(after, first=1), asked)
    return next(each for each in found if each.metric == metric)


@pytest.mark.parametrize(
    ("p", "freedom", "value"),
    [
        (0.975, 1, 12.7062),
        (0.975, 4, 2.7764),
        (0.995, 4, 4.6041),
        (0.995, 6, 3.7074),
        (0.95, 2, 2.9200),
        (0.9995, 3, 12.9240),
        (0.975, 30, 2.0423),
        (0.975, 1000, 1.9623),
        (0.6, 5, 0.2672),
    ],
)
def test_students_quantiles_are_those_of_printed_tables(
    p: float, freedom: int, value: float
) -> None:
    assert student.quantile(p, freedom) == pytest.approx(value, abs=5e-5)


STEADY = [100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0]


@pytest.mark.parametrize(
    ("factor", "kind"),
    [
        (1.0, ChangeKind.UNCHANGED),
        (1.01, ChangeKind.UNCHANGED),
        (1.1, ChangeKind.FIXED),
        (0.9, ChangeKind.REGRESSED),
    ],
)
def test_what_is_steady_gets_a_verdict(factor: float, kind: ChangeKind) -> None:
    found = change(STEADY, [value * factor for value in STEADY])

    assert found.kind is kind
    assert found.change == pytest.approx(factor - 1)


def test_more_is_not_better_of_a_time() -> None:
    slower = rounds(STEADY, first=1, ttft_s=0.02)
    found = {each.metric: each for each in speed.changes(rounds(STEADY), slower, ASKED)}

    assert found[THROUGHPUT].kind is ChangeKind.UNCHANGED
    assert found[TTFT].kind is ChangeKind.REGRESSED
    assert str(found[TTFT]) == (
        "time to first token 10 → 20 ms, +100.0 % (+100.0 to +100.0 %, 7 rounds)"
    )


def test_there_is_no_verdict_where_noise_is_larger_than_the_effect() -> None:
    noisy = [100, 140, 70, 120, 90, 60, 130]
    found = change(STEADY, [value * 0.95 for value in noisy])

    assert found.kind is ChangeKind.NO_VERDICT
    assert found.why == "noise is larger than the effect"


def test_what_all_rounds_share_is_no_noise() -> None:
    """A neighbour's job slows both of a pair."""
    load = [1.0, 0.4, 1.0, 0.6, 0.9, 0.5, 1.0]
    before = [a * b for a, b in zip(STEADY, load, strict=True)]
    after = [0.9 * a * b for a, b in zip(STEADY, load, strict=True)]

    assert change(before, after).kind is ChangeKind.REGRESSED


def test_a_difference_that_is_sure_and_small_makes_no_difference() -> None:
    assert change(STEADY, [value * 0.98 for value in STEADY]).kind is ChangeKind.UNCHANGED
    strict = replace(ASKED, margin=0.005)
    assert change(STEADY, [value * 0.98 for value in STEADY], strict).kind is ChangeKind.REGRESSED


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (rounds(STEADY), rounds(STEADY, first=1, session="t"), "they did not take turns"),
        (rounds(STEADY), rounds(STEADY, first=20), "they did not take turns"),
        (rounds(STEADY), rounds(STEADY, first=1, node="n2"), "they were measured on several nodes"),
        (rounds(STEADY[:2]), rounds(STEADY[:2], first=1), "fewer than 3 rounds of each"),
    ],
)
def test_rounds_that_cannot_be_paired_give_no_verdict(
    before: tuple[Round, ...], after: tuple[Round, ...], why: str
) -> None:
    for found in speed.changes(before, after, ASKED):
        assert found.kind is ChangeKind.NO_VERDICT
        assert found.why.startswith(why)
        assert found.low is None


def test_the_order_within_a_pair_does_not_matter() -> None:
    there_and_back = tuple(
        replace(one, turn=2 * number + (1 - number % 2))
        for number, one in enumerate(rounds(STEADY))
    )
    others = tuple(
        replace(one, turn=2 * number + number % 2) for number, one in enumerate(rounds(STEADY))
    )

    found = speed.changes(there_and_back, others, ASKED)

    assert {each.kind for each in found} == {ChangeKind.UNCHANGED}


def test_drafts_that_are_accepted_are_compared_where_there_are_any() -> None:
    found = speed.changes(
        rounds(STEADY, acceptance_length=2.5), rounds(STEADY, first=1, acceptance_length=2.0), ASKED
    )

    assert {each.metric: each.kind for each in found} == {
        THROUGHPUT: ChangeKind.UNCHANGED,
        TTFT: ChangeKind.UNCHANGED,
        "acceptance length": ChangeKind.REGRESSED,
    }


VALUES = st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=3, max_size=9)


@given(VALUES, st.floats(0.001, 0.5), st.floats(0.51, 0.999))
def test_the_other_way_round_it_is_the_other_way_round(
    pairs: list[tuple[float, float]], margin: float, confidence: float
) -> None:
    asked = Speed(margin=margin, confidence=confidence)
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = change(before, after, asked), change(after, before, asked)

    assert there.change is not None
    assert back.change is not None
    assert math.log1p(there.change) == pytest.approx(-math.log1p(back.change), abs=1e-9)
    assert {there.kind, back.kind} != {ChangeKind.FIXED}
    assert {there.kind, back.kind} != {ChangeKind.REGRESSED}


@given(VALUES, st.floats(0.1, 1000))
def test_units_do_not_matter(pairs: list[tuple[float, float]], factor: float) -> None:
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    one = change(before, after)
    other = change([a * factor for a in before], [b * factor for b in after])

    assert one.low == pytest.approx(other.low, rel=1e-6, abs=1e-9)
    assert one.high == pytest.approx(other.high, rel=1e-6, abs=1e-9)


def simulated(drawn: random.Random, effect: float, noise: float) -> SpeedChange:
    def values(factor: float) -> list[float]:
        return [factor * math.exp(drawn.gauss(0, noise)) for _ in range(7)]

    return change(values(100), values(100 * (1 + effect)))


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    drawn = random.Random(1)
    held = sum(
        bool(found.low is not None and found.high is not None and found.low <= 0.1 <= found.high)
        for found in (simulated(drawn, 0.1, 0.05) for _ in range(1000))
    )

    assert 0.98 <= held / 1000 < 1.0


def test_builds_that_are_alike_are_hardly_ever_told_apart() -> None:
    drawn = random.Random(3)
    kinds = [simulated(drawn, 0.0, 0.05).kind for _ in range(1000)]

    told = sum(kind in {ChangeKind.FIXED, ChangeKind.REGRESSED} for kind in kinds)
    assert told / 1000 <= 0.02


def test_a_real_difference_is_found_where_noise_is_small() -> None:
    drawn = random.Random(3)

    assert all(simulated(drawn, -0.1, 0.01).kind is ChangeKind.REGRESSED for _ in range(200))


# In a comparison, and at the gate


def answered(found: tuple[Round, ...], backend: str = "A") -> tuple[Cell, Record]:
    cell = replace(a_cell(), speed=ASKED)
    attempt = an_attempt(a_report(target=groups(backend)))
    return cell, a_record(outcome="runs", attempt=attempt, build=a_build(), rounds=found)


def compared(then: tuple[Cell, Record], now: tuple[Cell, Record]) -> CellChange:
    sides = [Side(name="x", matrix=matrix.build([cell], [record])) for cell, record in (then, now)]
    [found] = comparison.compare(*sides).cells
    return found


SLOWER = rounds([value * 0.9 for value in STEADY], first=1)
FASTER = rounds([value * 1.1 for value in STEADY], first=1)
SAME = rounds(STEADY, first=1)
LATER = rounds(STEADY, session="later")


@pytest.mark.parametrize(
    ("now", "backend", "kind"),
    [
        (SAME, "A", ChangeKind.UNCHANGED),
        (SLOWER, "A", ChangeKind.REGRESSED),
        (FASTER, "A", ChangeKind.FIXED),
        (LATER, "A", ChangeKind.NO_VERDICT),
        (SAME, "B", ChangeKind.DRIFT),
        (FASTER, "B", ChangeKind.DRIFT),
        (SLOWER, "B", ChangeKind.REGRESSED),
    ],
)
def test_a_cell_is_what_its_speed_makes_of_it(
    now: tuple[Round, ...], backend: str, kind: ChangeKind
) -> None:
    found = compared(answered(rounds(STEADY)), answered(now, backend))

    assert found.kind is kind


def test_a_cell_that_is_slower_blocks_although_it_passes() -> None:
    then, now = answered(rounds(STEADY)), answered(SLOWER)
    base = Side(name="old", matrix=matrix.build([then[0]], [then[1]]))
    run = Side(name="new", matrix=matrix.build([now[0]], [now[1]]))
    decided = decide(
        run.matrix, Gate(), today=date(2026, 12, 3), comparison=comparison.compare(base, run)
    )

    assert decided.sentence() == "blocked: 1 regression"
    assert decided.blockers[0].reason.startswith("throughput 100 → 90 tokens/s, -10.0 % (")


def test_every_metric_has_its_line_also_where_nothing_changed() -> None:
    then, now = answered(rounds(STEADY)), answered(SLOWER)
    base = Side(name="old", matrix=matrix.build([then[0]], [then[1]]))
    run = Side(name="new", matrix=matrix.build([now[0]], [now[1]]))
    told = [
        difference_forms.to_markdown(
            difference.row(comparison.compare(base, side), side.matrix)
        ).replace("\\", "")
        for side in (run, Side(name="same", matrix=matrix.build([then[0]], [answered(SAME)[1]])))
    ]

    assert told == snapshot(
        [
            """\
**1 regression**

old → new

### regressed: 1

- llama / auto: cpu
  - throughput 100 → 90 tokens/s, -10.0 % (-10.0 to -10.0 %, 7 rounds): regressed
  - time to first token 10 → 10 ms, +0.0 % (+0.0 to +0.0 %, 7 rounds): unchanged
""",
            """\
**nothing regressed; 1 unchanged**

old → same

<details>
<summary>unchanged: 1</summary>

- llama / auto: cpu
  - throughput 100 → 100 tokens/s, +0.0 % (+0.0 to +0.0 %, 7 rounds): unchanged
  - time to first token 10 → 10 ms, +0.0 % (+0.0 to +0.0 %, 7 rounds): unchanged

</details>
""",
        ]
    )


def test_a_cell_tells_its_own_speed() -> None:
    [throughput, ttft] = speed.measured(rounds(STEADY, ttft_s=0.0123))

    assert str(throughput) == "throughput 100 tokens/s (99 to 101)"
    assert str(ttft) == "time to first token 12.3 ms"
