"""What changed from one release to the next?"""

import dataclasses
from typing import Any

from jobs.contract.builds import Patch
from jobs.contract.seen import ProbeReport
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked
from orchestrator.concluded import matrix
from orchestrator.concluded.changes import Change, between_releases
from orchestrator.concluded.facts import Difference
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from tests.builders import EAGLE3, a_build, a_cell, a_failed_report, a_report, an_attempt, groups


def of_release(version: str, report: ProbeReport, **cell: Any) -> tuple[Cell, Record]:
    asked = a_cell(f"h100/llama/auto/v{version}", **cell)
    build = a_build(asked.build.name, vllm_version=version)
    attempt = an_attempt(report, cell_id=asked.id)
    judgement = judge(asked, build, attempt)
    return asked, Record(cell_id=asked.id, build=build, attempt=attempt, judgement=judgement)


def changes(*found: tuple[Cell, Record]) -> tuple[Change, ...]:
    cells, records = zip(*found, strict=True)
    return between_releases(matrix.build(cells, records))


def got(backend: str, **more: Any) -> ProbeReport:
    return a_report(target=groups(backend), **more)


def test_another_backend_is_a_change_of_card_and_model() -> None:
    [change] = changes(of_release("0.31.0", got("A")), of_release("0.32.0", got("B")))

    assert (change.card, change.model, change.backend) == ("h100", "llama", "auto")
    assert (change.before, change.after) == ("v0.31.0", "v0.32.0")
    assert change.differences == (
        Difference(fact="target attention", before="A (A)", after="B (B)"),
    )


def test_releases_are_in_the_order_of_their_versions_whatever_their_names() -> None:
    found = changes(
        of_release("0.10.0", got("C")), of_release("0.9.0", got("B")), of_release("0.8.1", got("A"))
    )

    assert [(c.before, c.after) for c in found] == [("v0.8.1", "v0.9.0"), ("v0.9.0", "v0.10.0")]


def test_what_stays_the_same_is_no_change() -> None:
    assert changes(of_release("0.31.0", got("A")), of_release("0.32.0", got("A"))) == ()


def test_a_class_that_only_moved_is_no_change() -> None:
    [group] = groups("A")
    moved = dataclasses.replace(group, class_path="vllm.elsewhere.A")

    assert not changes(
        of_release("0.31.0", got("A")), of_release("0.32.0", a_report(target=(moved,)))
    )


def test_an_engine_that_no_longer_starts_is_one_change() -> None:
    broken = a_failed_report("No KV cache layout satisfies it")
    [change] = changes(of_release("0.31.0", got("A")), of_release("0.32.0", broken))

    assert change.differences == (
        Difference(fact="outcome", before="runs", after="refused (kv_layout_conflict)"),
    )


def test_runner_and_request_are_among_what_changes() -> None:
    asked = {"draft": Asked(attention_backend="T"), "speculative": EAGLE3}
    [change] = changes(
        of_release("0.31.0", got("A", draft=groups("A")), **asked),
        of_release("0.32.0", got("A", draft=groups("T"), runner="V2"), **asked),
    )

    assert {each.fact: (each.before, each.after) for each in change.differences} == {
        "runner": ("V1", "V2"),
        "draft attention": ("A (A)", "T (T)"),
        "draft.attention_backend T": ("dropped", "honoured"),
    }


def test_a_patched_build_is_no_release() -> None:
    cell, record = of_release("0.32.0", got("B"))
    build = dataclasses.replace(cell.build, patches=(Patch(name="p", text=""),))

    assert not changes(
        of_release("0.31.0", got("A")), (dataclasses.replace(cell, build=build), record)
    )


def test_a_cell_that_was_not_run_is_compared_with_nothing() -> None:
    cell, record = of_release("0.32.0", got("B"))

    assert not changes(
        of_release("0.31.0", got("A")), (cell, dataclasses.replace(record, attempt=None))
    )
