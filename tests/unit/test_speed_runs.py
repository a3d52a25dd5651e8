"""Runs that measure speed, from words to records. The cluster is a stand-in."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs.contract.attempts import Attempt
from jobs.contract.seen import SpeedSample, SpeedSeen
from orchestrator.asked.compose import compose
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.record import Record
from orchestrator.errors import ConfigError
from orchestrator.run import validate
from orchestrator.running.cluster import Needs, this_machine
from orchestrator.running.waiting import Place
from tests.builders import a_failed_report, a_report, an_attempt
from tests.fakes import LOST_NODE, FakeCluster, SilentProgress

BUILDS = "build=[v0_32,v0_32_strict_cpu]"
WORDS = ["suite=speed", "model=[llama]", BUILDS, "suite.speed.rounds=3"]
OLD, NEW = "cpu/llama/auto/v0_32", "cpu/llama/auto/v0_32_strict_cpu"
BROKEN = an_attempt(a_failed_report("No KV cache layout satisfies it"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measured(tokens_per_s: float) -> Attempt:
    seen = SpeedSeen(samples=(SpeedSample(tokens_per_s=tokens_per_s, ttft_s=0.01),))
    return an_attempt(a_report(speed=seen), memory_mib=100)


def a_cluster() -> FakeCluster:
    return FakeCluster(
        script={
            OLD: [measured(100 + number) for number in range(9)],
            NEW: [measured(50 + number) for number in range(9)],
        }
    )


def run(cluster: FakeCluster, words: Sequence[str] = WORDS) -> dict[str, Record]:
    done = validate(compose(words), words, cluster, SilentProgress())
    return {record.cell_id: record for record in done.records}


def test_builds_are_measured_in_turns_and_every_round_is_recorded() -> None:
    cluster = a_cluster()
    records = run(cluster)

    assert cluster.submitted == [OLD, NEW, NEW, OLD, OLD, NEW]
    assert [found.speed.samples[0].tokens_per_s for found in records[OLD].rounds] == [100, 101, 102]
    assert [found.turn for found in records[NEW].rounds] == [2, 3, 6]
    assert records[NEW].rounds[0].host_mib == 100
    assert all(record.verdict is Verdict.PASSED for record in records.values())


def test_every_round_is_an_attempt_of_its_own_and_the_last_one_is_the_records() -> None:
    records = run(a_cluster())

    [last, earlier] = records[OLD].attempt, records[OLD].earlier
    assert last is not None
    assert (last.number, earlier) == (3, ())


def test_a_round_that_was_lost_is_run_again_in_its_place() -> None:
    cluster = a_cluster()
    cluster.script[NEW] = [measured(1), LOST_NODE, measured(2), measured(3)]
    records = run(cluster)

    assert cluster.submitted == [OLD, NEW, NEW, NEW, OLD, OLD, NEW]
    assert len(records[NEW].rounds) == 3
    assert records[NEW].earlier == (LOST_NODE,)


def test_a_build_that_fails_is_through_and_the_other_goes_on() -> None:
    cluster = a_cluster()
    cluster.script[NEW] = [measured(1), BROKEN]
    records = run(cluster)

    assert cluster.submitted == [OLD, NEW, NEW, OLD, OLD]
    assert records[NEW].verdict is Verdict.FAILED
    assert len(records[NEW].rounds) == 1
    assert len(records[OLD].rounds) == 3


def test_the_same_command_keeps_what_was_measured() -> None:
    cluster = a_cluster()
    first = run(cluster)
    cluster.submitted.clear()

    assert run(cluster) == first
    assert cluster.submitted == []


@pytest.mark.parametrize("word", ["suite.speed.margin=0.1", "suite.speed.confidence=0.9"])
def test_what_counts_as_a_difference_measures_nothing_anew(word: str) -> None:
    cluster = a_cluster()
    run(cluster)
    cluster.submitted.clear()
    run(cluster, [*WORDS, word])

    assert cluster.submitted == []


def test_another_workload_is_measured_anew() -> None:
    cluster = a_cluster()
    run(cluster)
    cluster.submitted.clear()
    run(cluster, [*WORDS, "suite.speed.prompts=2"])

    assert len(cluster.submitted) == 6


def test_a_build_that_comes_later_is_measured_in_turns_with_the_others_again() -> None:
    cluster = a_cluster()
    run(cluster, [*WORDS, "build=[v0_32]"])
    cluster.submitted.clear()
    records = run(cluster)

    assert cluster.submitted == [OLD, NEW, NEW, OLD, OLD, NEW]
    assert records[OLD].rounds[0].session == records[NEW].rounds[0].session


def mistakes(*words: str) -> str:
    with pytest.raises(ConfigError) as raised:
        compose([*WORDS, *words])
    return str(raised.value)


def test_an_emulated_engine_has_no_speed() -> None:
    words = ["hardware=[h100]", "model=[llama31_8b]", "build=[v0_32_gpu]", "engine_mode=emulated"]

    assert (
        "conf/suite/speed.yaml: suite.check: emulated engines have no speed, since no kernel runs:"
        " measure real ones with engine_mode=real, or set suite.check=init" in mistakes(*words)
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("suite.speed.rounds=2", "suite.speed.rounds: Input should be greater than or equal to 3"),
        ("suite.speed.margin=0", "suite.speed.margin: Input should be greater than 0"),
        ("suite.speed.confidence=1", "suite.speed.confidence: Input should be less than 1"),
        ("suite.speed.prompst=4", 'suite.speed.prompst: there is no key "prompst"'),
        (
            "suite.speed.output_tokens=100",
            "model.llama.engine_args.max_model_len: 128 is not enough for suite.speed's",
        ),
        (
            "model.llama.engine_args.data_parallel_size=2",
            "model.llama.engine_args: the speed of several engines",
        ),
    ],
)
def test_a_measurement_that_makes_no_sense_is_refused(word: str, message: str) -> None:
    assert message in mistakes(word)


def test_a_cell_that_is_measured_has_its_node_alone() -> None:
    node = this_machine()
    place = Place(node=node, cpus=node.cpus, devices=0, memory_gib=node.memory_gib, ahead=4)
    alone = Needs(labels={}, devices=0, memory_gib=0.1, alone=True)
    other = Needs(labels={}, devices=0, memory_gib=0.1)

    assert place.has_room(alone)
    place.take(alone, 1)
    assert not place.is_free_for(other)
    assert not place.has_room(alone)
    place.take(alone, -1)
    place.take(other, 1)
    assert not place.has_room(alone)
