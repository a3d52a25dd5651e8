"""What comes back from a node, whatever a probe does."""

import signal
from pathlib import Path

import psutil
import pytest

from jobs.contract.terms import Isolation
from jobs.node import hosts, probing
from jobs.node.errors import NodeError
from jobs.processes import Step
from tests.unit.standin import PLACEMENT, a_request, run, runs, started_for

pytestmark = pytest.mark.usefixtures("no_host_stays")

ISOLATIONS = pytest.mark.parametrize("isolation", list(Isolation))

QUICK_TO_KILL = (
    Step(signal=signal.SIGTERM, wait_s=0.2),
    Step(signal=signal.SIGKILL, wait_s=10.0),
)


@ISOLATIONS
def test_a_probe_that_reports_and_ends_is_passed_on_as_it_is(
    tmp_path: Path, isolation: Isolation
) -> None:
    attempt = run(a_request(tmp_path, "report(ready=True)", isolation=isolation))

    assert attempt["exit"] == {
        "code": 0,
        "signal": None,
        "timed_out": None,
        "out_of_memory": False,
        "host_lost": False,
        "parted": False,
        "node": None,
    }
    assert attempt["report"]["ready"] is True
    assert attempt["isolation"] == isolation
    assert attempt["log_tail"] == ""
    assert attempt["processes_killed"] == 0
    assert attempt["placement"]["node"] == PLACEMENT.node


def test_a_failure_comes_with_the_end_of_the_log(tmp_path: Path) -> None:
    attempt = run(
        a_request(tmp_path, "print('x' * 9000, 'why'); report(failure={'phase': 'load'})")
    )

    assert attempt["exit"]["code"] == 0
    assert attempt["log_tail"].endswith("x why")
    assert len(attempt["log_tail"]) <= 4000


def test_a_probe_that_raises_leaves_its_traceback(tmp_path: Path) -> None:
    attempt = run(a_request(tmp_path, "raise RuntimeError('no such kernel')"))

    assert attempt["exit"]["code"] == 70
    assert "RuntimeError: no such kernel" in attempt["log_tail"]
    assert attempt["report"] is None


@ISOLATIONS
def test_a_killed_probe_is_told_by_its_signal(tmp_path: Path, isolation: Isolation) -> None:
    code = "os.kill(os.getpid(), signal.SIGKILL)"

    assert run(a_request(tmp_path, code, isolation=isolation))["exit"]["signal"] == signal.SIGKILL


def test_a_crash_leaves_the_stack_in_the_log(tmp_path: Path) -> None:
    attempt = run(a_request(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)"))

    assert attempt["exit"]["signal"] == signal.SIGSEGV
    assert "Segmentation fault" in attempt["log_tail"]


def test_a_probe_that_hangs_is_ended_with_its_stacks_in_the_log(tmp_path: Path) -> None:
    code = "def stuck(): time.sleep(600)\nstuck()"

    attempt = run(a_request(tmp_path, code, deadline_s=0.1))

    assert attempt["exit"]["timed_out"]
    assert attempt["exit"]["signal"] == signal.SIGTERM
    assert "in stuck" in attempt["log_tail"]


def test_a_stopped_probe_that_shuts_its_ears_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "OUT_OF_TIME", QUICK_TO_KILL)
    code = """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600)
    """

    attempt = run(a_request(tmp_path, code, deadline_s=0.1))

    assert attempt["exit"]["timed_out"]
    assert attempt["exit"]["signal"] == signal.SIGKILL


def test_a_daemon_that_left_the_session_is_found_and_killed(tmp_path: Path) -> None:
    code = """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                (folder / "daemon").write_text(str(os.getpid()))
                os.closerange(0, 3)
                time.sleep(600)
            os._exit(0)
        os.wait()
        while not (folder / "daemon").exists() or not (folder / "daemon").read_text():
            time.sleep(0.01)
        report()
    """
    request = a_request(tmp_path, code)

    attempt = run(request)

    assert attempt["exit"]["code"] == 0
    assert attempt["processes_killed"] == 1
    assert not runs(int(Path(request.workdir, "daemon").read_text()))


def test_a_child_that_is_about_to_end_is_not_killed(tmp_path: Path) -> None:
    code = "subprocess.Popen(['sleep', '0.3']); report()"

    assert run(a_request(tmp_path, code))["processes_killed"] == 0


@pytest.mark.parametrize("text", ['{"failure": nu', "[]", ""])
def test_a_torn_report_is_none(tmp_path: Path, text: str) -> None:
    code = f"(folder / 'report.json').write_text({text!r})"

    attempt = run(a_request(tmp_path, code))

    assert attempt["report"] is None
    assert "report.json is not a report" in attempt["log_tail"]


@pytest.mark.parametrize("make", ["os.mkfifo", "os.mkdir"])
def test_what_is_no_file_in_place_of_report_phase_and_log_holds_nobody_up(
    tmp_path: Path, make: str
) -> None:
    code = f"""
        for name in ("report.json", "phase.json", "probe.log"):
            (folder / name).unlink(missing_ok=True)
            {make}(folder / name)
    """

    attempt = run(a_request(tmp_path, code))

    assert (attempt["report"], attempt["phase"]) == (None, "prepare")
    assert "report.json is no regular file" in attempt["log_tail"]
    assert "probe.log is no regular file" in attempt["log_tail"]


def test_a_report_that_is_nested_without_end_is_none(tmp_path: Path) -> None:
    attempt = run(a_request(tmp_path, "(folder / 'report.json').write_text('[' * 200_000)"))

    assert attempt["report"] is None
    assert "nested too deeply" in attempt["log_tail"]


def test_the_phase_is_the_last_that_the_probe_left_on_disk(tmp_path: Path) -> None:
    code = """
        (folder / "phase.json").write_text(json.dumps({"phase": "load", "at": 1.0}))
        os._exit(3)
    """
    attempt = run(a_request(tmp_path, code))

    assert attempt["phase"] == "load"
    assert attempt["exit"]["code"] == 3


def test_what_an_earlier_try_left_is_not_mistaken_for_this_ones(tmp_path: Path) -> None:
    request = a_request(tmp_path, "os._exit(1)")
    folder = Path(request.workdir)
    folder.mkdir(parents=True)
    (folder / "report.json").write_text('{"failure": null}')
    (folder / "phase.json").write_text('{"phase": "ready"}')
    (folder / "probe.log").write_text("of yesterday")

    attempt = run(request)

    assert (attempt["report"], attempt["phase"], attempt["log_tail"]) == (None, "prepare", "")


@ISOLATIONS
def test_a_build_that_cannot_be_imported_is_a_finding(tmp_path: Path, isolation: Isolation) -> None:
    env = {"STANDIN_PRELOAD": "import no_such_vllm"}

    attempt = run(a_request(tmp_path, "", isolation=isolation, env=env))

    assert attempt["exit"]["code"] == 1
    assert attempt["phase"] == "import"
    assert "No module named 'no_such_vllm'" in attempt["log_tail"]
    assert "no_such_vllm" in Path(attempt["log"]).read_text()


@ISOLATIONS
def test_a_build_that_crashes_while_it_is_imported_is_told_by_its_signal(
    tmp_path: Path, isolation: Isolation
) -> None:
    env = {"STANDIN_PRELOAD": "os.kill(os.getpid(), signal.SIGILL)"}

    attempt = run(a_request(tmp_path, "", isolation=isolation, env=env))

    assert attempt["exit"]["signal"] == signal.SIGILL


def test_a_build_that_hangs_while_it_is_imported_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "BOOT_S", 0.5)
    attempt = run(a_request(tmp_path, "", env={"STANDIN_PRELOAD": "time.sleep(600)"}))

    assert attempt["exit"]["timed_out"]
    assert attempt["phase"] == "import"
    assert started_for(tmp_path) == []


def test_a_missing_interpreter_is_the_nodes_fault(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="/no/such/python can't be started"):
        run(a_request(tmp_path, "", python="/no/such/python"))


def test_a_folder_that_cannot_be_made_is_the_nodes_fault(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("a file")

    with pytest.raises(NodeError, match="cells"):
        run(a_request(tmp_path, ""))


def test_nothing_of_the_orchestrator_can_be_imported_in_a_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("RAY_JOB_ID", "1")
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    code = """
        import importlib.util
        names = ["orchestrator", "tests", "conf", "jobs.contract"]
        report(
            importable=[name for name in names if importlib.util.find_spec(name)],
            leaked=[n for n in os.environ if n.startswith(("RAY_", "VLLM_USE", "PYTEST_"))],
            path=sys.path,
        )
    """
    report = run(a_request(tmp_path, code))["report"]

    assert report["importable"] == ["jobs.contract"]
    assert report["leaked"] == []
    assert "" not in report["path"]


def test_devices_and_temporary_files_are_the_cells_own_and_the_rest_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        import tempfile
        open(tempfile.mktemp(), "w").close()
        report(host=host, devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
               temporary=tempfile.gettempdir(), knob=os.environ.get("KNOB"))
    """
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    first = run(a_request(tmp_path, code))["report"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    second = run(a_request(tmp_path, code))["report"]
    other = run(a_request(tmp_path, code, env={"KNOB": "on"}))["report"]

    assert (first["devices"], second["devices"]) == ("0", "1")
    assert first["host"] == second["host"] != other["host"]
    assert (first["knob"], other["knob"]) == (None, "on")
    assert first["temporary"] != second["temporary"]
    assert not Path(first["temporary"]).exists()


def test_no_descriptor_leaks_from_host_to_cell_or_from_cell_to_cell(tmp_path: Path) -> None:
    code = (
        "report(open=[os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')[:-1]])"
    )
    code_that_opens = "keep = open(folder / 'mine', 'w'); os.fork() or time.sleep(0.2)"
    run(a_request(tmp_path, code_that_opens, number=1))
    request = a_request(tmp_path, code, number=2)

    nothing, *outputs = sorted(run(request)["report"]["open"])
    assert nothing == "/dev/null"
    assert outputs == [outputs[0]] * 2
    assert outputs[0].startswith("pipe:")


def test_cold_isolation_leaves_nothing(tmp_path: Path) -> None:
    before = _children()

    attempt = run(a_request(tmp_path, "report()", isolation=Isolation.COLD))

    assert attempt["exit"]["code"] == 0
    assert started_for(tmp_path) == []
    assert _children() == before


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}
