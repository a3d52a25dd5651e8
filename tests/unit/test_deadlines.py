"""Which deadline a cell missed, and where it was then."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.contract.asked import Deadlines
from jobs.contract.attempts import Timeout
from jobs.contract.terms import Phase
from jobs.node.deadlines import Watch
from tests.unit.standin import a_request, run

DEADLINES = Deadlines(attempt_s=100.0, phases_s={Phase.LOAD: 20.0}, quiet_s=30.0)


def test_a_phase_has_its_time_from_when_it_is_entered() -> None:
    watch = Watch(DEADLINES, now=0.0)
    watch.see(Phase.LOAD, now=5.0)
    watch.see(Phase.LOAD, now=24.0)

    assert watch.missed(24.9) is None
    assert watch.left_s(24.0) == 1.0
    assert watch.missed(25.0) is Timeout.PHASE


def test_a_new_phase_and_output_are_signs_of_life() -> None:
    watch = Watch(DEADLINES, now=0.0)
    watch.see(Phase.CONFIG, now=20.0)
    assert watch.missed(49.0) is None

    watch.hear(at=45.0)

    assert watch.missed(74.0) is None
    assert watch.missed(75.0) is Timeout.QUIET


def test_an_attempt_ends_however_lively_it_is() -> None:
    watch = Watch(DEADLINES, now=0.0)
    watch.hear(at=99.0)

    assert watch.missed(100.0) is Timeout.ATTEMPT


@pytest.mark.usefixtures("no_host_stays")
@pytest.mark.parametrize(
    ("missed", "deadlines"),
    [
        ("attempt", Deadlines(attempt_s=0.5, quiet_s=20.0)),
        ("quiet", Deadlines(attempt_s=20.0, quiet_s=0.5)),
        ("phase", Deadlines(attempt_s=20.0, quiet_s=20.0, phases_s={Phase.LOAD: 0.3})),
    ],
)
def test_what_was_waiting_is_told(tmp_path: Path, missed: str, deadlines: Deadlines) -> None:
    code = """
        (folder / "phase.json").write_text(json.dumps({"phase": "load"}))
        def innermost(): time.sleep(600)
        def outer(): innermost()
        outer()
    """

    attempt = run(replace(a_request(tmp_path, code), deadlines=deadlines))

    assert attempt["exit"]["timed_out"] == missed
    assert attempt["exit"]["signal"] == signal.SIGTERM
    assert attempt["phase"] == "load"
    inner, outer, *_ = attempt["waiting"]
    assert (inner.split()[-1], outer.split()[-1]) == ("innermost", "outer")
    assert any(frame.startswith("jobs/probe/cell.py:") for frame in attempt["waiting"])
    assert "is S (sleeping)" in attempt["log_tail"]


@pytest.mark.usefixtures("no_host_stays")
def test_a_process_that_is_no_python_is_described(tmp_path: Path) -> None:
    code = "subprocess.Popen(['sleep', '599']); time.sleep(600)"

    attempt = run(a_request(tmp_path, code, deadline_s=0.5))

    assert "(sleep) is S (sleeping)" in attempt["log_tail"]
    assert ": sleep 599" in attempt["log_tail"]
    assert attempt["processes_killed"] == 1
