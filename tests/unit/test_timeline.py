"""What runs told of one question over time."""

from dataclasses import replace
from typing import Any

from jobs.contract.builds import Patch
from jobs.contract.seen import ProbeReport
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Expectation
from orchestrator.concluded.judge import Judgement, Verdict, judge, not_run
from orchestrator.concluded.record import Record
from orchestrator.concluded.timeline import Entry, Timeline, timelines
from tests.builders import a_build, a_cell, a_failed_report, a_report, an_attempt, groups

CELL = "h100/llama/auto"
GOOD = a_report(target=groups("A"))
BAD = a_failed_report("CUDA error: an illegal memory access", type_="torch.AcceleratorError")


def an_entry(
    run: str,
    report: ProbeReport = GOOD,
    *,
    version: str = "0.32.0",
    cell: Cell | None = None,
    digest: str = "d1",
    **more: Any,
) -> Entry:
    cell = cell or a_cell(f"{CELL}/v{version}")
    build = a_build(vllm_version=version)
    attempt = an_attempt(report)
    judgement = judge(cell, build, attempt)
    fields: dict[str, Any] = {
        "build": build,
        "attempt": attempt,
        "judgement": judgement,
        "digest": digest,
    }
    return Entry(
        run=run,
        cell_id=cell.id,
        fingerprint=more.pop("fingerprint", "f1"),
        cell=cell,
        is_last=more.pop("is_last", True),
        record=Record(cell_id=cell.id, **fields | more),
    )


def timeline(*entries: Entry) -> Timeline:
    [found] = timelines(entries)
    return found


def test_what_asks_the_same_by_another_name_is_one_timeline() -> None:
    renamed = a_cell("h100/llama_new/auto/v0_32")

    found = timeline(an_entry("r1"), an_entry("r2", cell=renamed))

    assert found.names == ("h100/llama_new/auto", CELL)
    assert [entry.run for entry in found.told] == ["r1", "r2"]


def test_of_what_asks_something_else_by_the_same_name_there_are_two() -> None:
    assert len(timelines([an_entry("r1"), an_entry("r2", fingerprint="f2")])) == 2


def test_it_last_passed_in_the_newest_run_that_says_so() -> None:
    found = timeline(an_entry("r1"), an_entry("r2"), an_entry("r3", BAD))

    assert found.last_passed is not None
    assert found.last_passed.run == "r2"
    assert timeline(an_entry("r1", BAD)).last_passed is None


def test_a_record_that_a_later_one_of_its_run_replaces_is_no_last_word() -> None:
    found = timeline(an_entry("r1", is_last=False), an_entry("r1", BAD))

    assert [entry.verdict for entry in found.told] == [Verdict.FAILED]
    assert found.last_passed is None


def test_releases_are_compared_in_the_order_of_their_versions_by_their_newest_answer() -> None:
    other = a_report(target=groups("B"))
    found = timeline(
        an_entry("r1", other, version="0.9.0"),
        an_entry("r2", other, version="0.10.0"),
        an_entry("r3", version="0.9.0"),
    )

    [step] = found.steps

    assert (step.before, step.after) == ("0.9.0", "0.10.0")
    assert [str(each) for each in step.differences] == ["target attention: A (A) → B (B)"]


def test_a_patched_build_and_a_failure_of_the_cluster_say_nothing_of_a_release() -> None:
    plain = a_cell(f"{CELL}/v0_32")
    patched = replace(plain, build=replace(plain.build, patches=(Patch(name="p.diff", text=""),)))
    lost = Judgement(verdict=Verdict.FAILED, category="nccl_error", outcome="fails")
    found = timeline(
        an_entry("r1", version="0.31.0"),
        an_entry("r2", a_report(target=groups("B")), cell=patched),
        an_entry("r3", version="0.33.0", judgement=lost),
        an_entry("r4", version="0.34.0", judgement=not_run("no node")),
    )

    assert found.steps == ()


def test_one_digest_with_two_verdicts_is_flaky() -> None:
    [found] = timeline(an_entry("r1"), an_entry("r2", BAD), an_entry("r3")).wavering

    verdicts = [verdict for _, verdict in found.tries]
    assert verdicts == [Verdict.PASSED, Verdict.FAILED, Verdict.PASSED]
    assert found.digest == "d1"


def test_another_digest_or_another_expectation_explains_another_verdict() -> None:
    strict = a_cell(f"{CELL}/v0.32.0", expect=Expectation(outcome=("refused",)))

    assert not timeline(an_entry("r1"), an_entry("r2", BAD, digest="d2")).wavering
    assert not timeline(an_entry("r1"), an_entry("r2", cell=strict)).wavering


def test_a_verdict_that_was_kept_is_no_second_try_and_is_listed_once() -> None:
    found = timeline(an_entry("r1", BAD), an_entry("r2", BAD, kept_from="r1"), an_entry("r3"))

    assert [entry.run for entry in found.told] == ["r1", "r3"]
    assert len(found.wavering[0].tries) == 2


def test_that_our_rules_have_changed_since_makes_no_cell_flaky() -> None:
    judged_otherwise = Judgement(verdict=Verdict.FAILED, category="unknown", outcome="fails")

    assert not timeline(an_entry("r1", judgement=judged_otherwise), an_entry("r2")).wavering


def test_what_passed_only_at_another_attempt_is_flaky() -> None:
    [found] = timeline(an_entry("r1", earlier=("cuda_error: an illegal access",))).wavering

    assert [entry.run for entry, _ in found.tries] == ["r1"]
    assert not timeline(an_entry("r1", earlier=("the node went away",))).wavering
