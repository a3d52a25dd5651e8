"""What emulated engines got, held against what real cards did."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.seen import Engine, ProbeReport
from jobs.contract.terms import EngineMode, Phase
from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded import matrix
from orchestrator.concluded.gate import Decision, decide
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.matrix import Matrix
from orchestrator.concluded.predictions import Disagreement, Observation, observation
from orchestrator.concluded.record import Record
from orchestrator.errors import ConfigError
from orchestrator.kept import evidence
from orchestrator.kept.records import RecordFile
from tests.builders import (
    a_build,
    a_cell,
    a_failed_report,
    a_record,
    a_report,
    an_attempt,
    an_emulated_cell,
    an_emulated_report,
    groups,
)

CELL = an_emulated_cell()
REAL_ID = "h100/llama/auto/nightly"


def a_prediction(report: ProbeReport | None = None, **more: Any) -> Record:
    report = report or an_emulated_report(CELL)
    given: dict[str, Any] = {"outcome": "runs", "build": a_build(), "attempt": an_attempt(report)}
    return a_record(CELL.id, **given | more)


def observed(report: ProbeReport | None = None, **more: Any) -> Observation | None:
    """By a real card."""
    given: dict[str, Any] = {
        "outcome": "runs",
        "build": a_build(),
        "attempt": an_attempt(report or a_report()),
    }
    return observation(a_record(REAL_ID, **given | more), "evidence/h100.jsonl")


def compared(prediction: Record, seen: Observation | None) -> Matrix:
    return matrix.build([CELL], [prediction], [seen] if seen else [])


def test_a_prediction_that_a_real_card_made_true_is_confirmed() -> None:
    result = compared(a_prediction(), observed())

    assert (result.confirmed, result.disagreements) == ((CELL.id,), ())


def test_another_backend_on_the_real_card_is_a_row_of_its_own() -> None:
    result = compared(a_prediction(), observed(a_report(target=groups("FLASH_ATTN"))))

    assert result.confirmed == ()
    assert result.disagreements == (
        Disagreement(
            cell_id=CELL.id,
            field="target.attention",
            predicted="vllm.CPU_ATTN",
            observed="vllm.FLASH_ATTN",
            source="evidence/h100.jsonl",
        ),
    )


def test_layout_runner_and_draft_are_compared_too() -> None:
    engine = Engine(runner="V2", kv_layout="LHBNC")
    real = replace(a_report(draft=groups("FLASHINFER")), engine=engine)

    result = compared(a_prediction(), observed(real))

    assert {each.field: each.predicted for each in result.disagreements} == {
        "draft.attention": "nothing",
        "kv_layout": "LBNHC",
        "runner": "V1",
    }


def test_an_engine_that_a_real_card_refuses_is_one_difference_not_six() -> None:
    refused = observed(
        a_failed_report("no"),
        verdict=Verdict.FAILED,
        category="backend_unsupported",
        outcome="refused",
    )

    [difference] = compared(a_prediction(), refused).disagreements

    assert str(difference) == (
        "outcome: predicted runs, but a real card had refused (backend_unsupported)"
        " (evidence/h100.jsonl)"
    )


def test_a_first_step_is_nothing_that_was_predicted() -> None:
    died = observed(
        a_failed_report("boom", phase=Phase.GENERATE), category="first_step_failed", outcome="fails"
    )

    assert compared(a_prediction(), died).confirmed == (CELL.id,)


@pytest.mark.parametrize("category", ["worker_killed", "gpu_busy", "no_space"])
def test_a_cluster_that_fails_shows_nothing(category: str) -> None:
    assert observed(a_failed_report("x"), category=category, outcome="fails") is None


@pytest.mark.parametrize("category", ["emulation_limit", "foreign_backend"])
def test_what_emulation_cannot_tell_is_no_prediction(category: str) -> None:
    unsure = a_prediction(category=category, verdict=Verdict.FAILED)

    result = compared(unsure, observed(a_report(target=groups("FLASH_ATTN"))))

    assert (result.confirmed, result.disagreements) == ((), ())


@pytest.mark.parametrize(
    "build",
    [a_build(vllm_version="0.31.0"), a_build(sources={"vllm/x.py": "a" * 64})],
    ids=["another version", "another patch"],
)
def test_only_the_same_code_can_confirm_a_prediction(build: object) -> None:
    assert compared(a_prediction(), observed(build=build)).confirmed == ()


def test_what_a_build_is_called_or_compiled_for_does_not_matter() -> None:
    build = a_build("nightly", digest="other", vllm_version="0.32.0+cu130")

    assert compared(a_prediction(), observed(build=build)).confirmed == (CELL.id,)


def test_real_cells_of_the_same_run_count() -> None:
    real = a_cell("h100/llama/auto/v0_32_gpu")
    record = a_record(real.id, outcome="runs", build=a_build(), attempt=an_attempt(a_report()))

    result = matrix.build([CELL, real], [a_prediction(), record])

    assert result.confirmed == (CELL.id,)


def test_an_emulated_engine_is_no_evidence() -> None:
    assert observed(an_emulated_report(CELL)) is None


# The gate.


def test_a_record_that_calls_an_emulated_engine_real_is_no_evidence() -> None:
    report = replace(an_emulated_report(CELL), engine_mode=EngineMode.REAL)

    assert observed(report) is None


def decision(result: Matrix, *waivers: Waiver) -> Decision:
    return decide(result, Gate(waivers=waivers), today=date(2026, 12, 2))


WRONG = compared(a_prediction(), observed(a_report(target=groups("FLASH_ATTN", "FLEX_ATTENTION"))))


def test_a_prediction_that_differs_from_a_real_card_blocks_although_its_cell_passed() -> None:
    blocked = decision(WRONG)

    assert blocked.sentence() == "blocked: 1 prediction differs from a real card"
    assert "predicted vllm.CPU_ATTN, but a real card had" in blocked.blockers[0].reason


def test_a_difference_that_is_known_can_be_waived() -> None:
    waiver = Waiver(cells="*", category="prediction_differs", reason="known", owner="me")

    assert decision(WRONG, waiver).ships


def test_what_a_real_card_confirmed_is_counted() -> None:
    confirmed = decision(compared(a_prediction(), observed()))

    assert confirmed.sentence() == "ships: 1 of 1 cells passed, 1 confirmed by a real card"


# Where evidence comes from.


def real_record(at: str, backend: str = "CPU_ATTN", cell_id: str = REAL_ID) -> Record:
    report = a_report(target=groups(backend))
    return a_record(cell_id, outcome="runs", at=at, build=a_build(), attempt=an_attempt(report))


def test_the_newest_record_of_all_files_counts(tmp_path: Path) -> None:
    run, file = tmp_path / "runs" / "2026-12-01-x", tmp_path / "h100.jsonl"
    run.mkdir(parents=True)
    RecordFile(run / "records.jsonl").append(real_record("2026-12-01T09:00:00+00:00"))
    RecordFile(file).append(real_record("2026-11-30T09:00:00+00:00", "FLASH_ATTN"))

    found = evidence.gather([str(run), str(file)], [CELL])

    assert compared(a_prediction(), found[-1]).confirmed == (CELL.id,)
    assert [each.source for each in found] == [str(file), str(run / "records.jsonl")]


def test_only_what_concerns_an_emulated_cell_is_kept(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(real_record("2026-12-01T09:00:00+00:00", cell_id="b200/llama/auto/nightly"))
    file.append(real_record("2026-12-01T09:00:00+00:00"))

    assert len(evidence.gather([str(tmp_path)], [CELL])) == 1
    assert evidence.gather([str(tmp_path)], [a_cell()]) == ()


@pytest.mark.parametrize(("cell_id", "category"), [("h100", None), (REAL_ID, "no_such_category")])
def test_a_record_that_makes_no_sense_is_the_users_mistake(
    cell_id: str, category: str | None
) -> None:
    record = replace(real_record("2026-12-01T00:00:00+00:00"), cell_id=cell_id)
    record = replace(record, judgement=replace(record.judgement, category=category))

    with pytest.raises(ConfigError, match=r"evidence: by-hand: the record of .* makes no sense"):
        evidence.read(record, "by-hand")


def test_a_file_that_holds_no_records_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"colour": "red"}\n')

    with pytest.raises(ConfigError, match=r"evidence: .*no record of this version"):
        evidence.gather([str(tmp_path)], [CELL])
