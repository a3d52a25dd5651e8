"""Nothing of a cell is lost or left, whoever of its family is killed or stopped."""

import json
import signal
from pathlib import Path

import pytest

from jobs.contract.asked import CellRequest
from jobs.contract.terms import Isolation
from jobs.node import host_sockets, hosts
from tests.unit.standin import a_caller, a_request, eventually, lies_in, run, runs, started_for

pytestmark = pytest.mark.usefixtures("no_host_stays")

ESCAPE = """
    def escape():
        # No session, no environment, no parent and no descriptor is left of the cell.
        daemon = "import os, sys, time; os.fork() and os._exit(0); os.setsid();"
        daemon += "print(os.getpid(), file=open(sys.argv[1], 'w'), flush=True); time.sleep(600)"
        command = [sys.executable, "-c", daemon, str(folder / "daemon")]
        subprocess.run(command, env={}, start_new_session=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        while not (folder / "daemon").exists() or not (folder / "daemon").read_text():
            time.sleep(0.01)
        return int((folder / "daemon").read_text())
"""

FAMILY = f"""{ESCAPE}
    family = dict(host=host, keeper=keeper, cell=os.getpid(), daemon=escape())
    family["worker"] = subprocess.Popen(["sleep", "600"]).pid
    report(family=family)
"""

MEMBERS = ("keeper", "cell", "daemon", "worker")


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("victim", ["host", "keeper", "cell"])
def test_nothing_is_left_when_one_of_them_is_killed(
    tmp_path: Path, victim: str, isolation: Isolation
) -> None:
    code = f"{FAMILY}\n    os.kill(family['{victim}'], signal.SIGKILL); time.sleep(600)"

    attempt = run(a_request(tmp_path, code, isolation=isolation))

    family = attempt["report"]["family"]
    assert not any(runs(family[member]) for member in ("cell", "daemon", "worker"))
    assert eventually(lambda: not runs(family["keeper"]))
    if victim == "cell":
        assert attempt["exit"]["signal"] == signal.SIGKILL
    else:
        assert attempt["exit"]["host_lost"]
        assert eventually(lambda: not runs(family["host"]))


def test_a_daemon_goes_even_if_keeper_and_host_die_together(tmp_path: Path) -> None:
    """Nothing that is left leads to it, but that it was seen before."""
    code = f"""{FAMILY}
    time.sleep(1.5)
    os.kill(host, signal.SIGSTOP)
    for one in (keeper, host): os.kill(one, signal.SIGKILL)
    time.sleep(600)"""

    attempt = run(a_request(tmp_path, code))

    assert attempt["exit"]["host_lost"]
    assert not runs(attempt["report"]["family"]["daemon"])


def test_a_worker_that_is_killed_does_not_end_its_cell(tmp_path: Path) -> None:
    code = f"{FAMILY}\n    os.kill(family['worker'], signal.SIGKILL); time.sleep(0.2)"

    attempt = run(a_request(tmp_path, code))

    family = attempt["report"]["family"]
    assert attempt["exit"]["code"] == 0
    assert not any(runs(family[member]) for member in ("cell", "daemon", "worker"))
    assert eventually(lambda: not runs(family["keeper"]))


@pytest.mark.parametrize("victim", ["keeper", "cell", "worker"])
def test_who_is_stopped_is_ended_with_the_cell(tmp_path: Path, victim: str) -> None:
    code = f"{FAMILY}\n    os.kill(family['{victim}'], signal.SIGSTOP); time.sleep(600)"
    request = a_request(tmp_path, code, deadline_s=1.0)

    attempt = run(request)

    family = attempt["report"]["family"]
    assert attempt["exit"]["timed_out"] == "attempt"
    assert eventually(lambda: not any(runs(family[member]) for member in MEMBERS))


def test_a_stopped_host_does_not_hold_up_its_cell(tmp_path: Path) -> None:
    code = f"{FAMILY}\n    os.kill(host, signal.SIGSTOP)"

    attempt = run(a_request(tmp_path, code))

    assert attempt["exit"]["code"] == 0
    assert eventually(lambda: not any(runs(attempt["report"]["family"][one]) for one in MEMBERS))


def test_a_stopped_keeper_goes_with_its_caller(tmp_path: Path) -> None:
    code = f"{FAMILY}\n    os.kill(keeper, signal.SIGSTOP); time.sleep(600)"
    request = a_request(tmp_path, code)
    caller = a_caller(request)
    family = _family(request)

    caller.kill()
    caller.wait()

    assert eventually(lambda: not any(runs(family[member]) for member in MEMBERS))
    assert runs(family["host"])


def test_a_killed_caller_takes_even_a_daemon_along(tmp_path: Path) -> None:
    request = a_request(tmp_path, f"{FAMILY}\n    time.sleep(600)")
    caller = a_caller(request)
    family = _family(request)

    caller.kill()
    caller.wait()

    assert eventually(lambda: not any(runs(family[member]) for member in MEMBERS))


def test_who_shares_a_host_that_is_killed_is_lost_with_it(tmp_path: Path) -> None:
    neighbour = a_request(tmp_path, "(folder / 'here').write_text('x'); time.sleep(600)")
    killer = a_request(tmp_path, "os.kill(host, signal.SIGKILL); time.sleep(600)", number=2)
    callers = [a_caller(neighbour)]
    lies_in(neighbour, "here")
    callers.append(a_caller(killer))

    assert [caller.wait(20) for caller in callers] == [0, 0]
    attempts = [json.loads(lies_in(one, "attempt.json").read_text()) for one in (neighbour, killer)]
    assert all(attempt["exit"]["host_lost"] for attempt in attempts)
    assert eventually(lambda: started_for(tmp_path) == [])


def test_a_host_that_hangs_when_it_should_fork_is_a_lost_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_sockets, "ANSWER_S", 1.0)
    monkeypatch.setattr(hosts, "END_S", 0.1)
    env = {"STANDIN_PRELOAD": "os.register_at_fork(before=lambda: time.sleep(600))"}

    attempt = run(a_request(tmp_path, "", isolation=Isolation.COLD, env=env))

    assert attempt["exit"]["host_lost"]
    assert (attempt["report"], attempt["phase"]) == (None, "prepare")
    assert eventually(lambda: started_for(tmp_path) == [])


def _family(request: CellRequest) -> dict[str, int]:
    family: dict[str, int] = json.loads(lies_in(request, "report.json").read_text())["family"]
    return family
