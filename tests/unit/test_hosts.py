"""Who shares a host, and what becomes of it and its cells when somebody dies."""

import _thread
import json
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jobs.contract.asked import CellRequest
from jobs.contract.terms import Isolation
from jobs.node import host_boot, host_sockets, runtime_folder
from jobs.node.errors import NodeError
from tests.unit.standin import a_caller, a_raylet, a_request, eventually, run, runs, started_for

pytestmark = pytest.mark.usefixtures("no_host_stays")

HANG = """
    (folder / "child").write_text(str(subprocess.Popen(["sleep", "600"]).pid))
    (folder / "pids").write_text(f"{host} {os.getpid()} " + (folder / "child").read_text())
    time.sleep(600)
"""


def test_one_host_serves_many_cells(tmp_path: Path) -> None:
    code = "report(host=host, pid=os.getpid())"
    first, second = (run(a_request(tmp_path, code, number=n))["report"] for n in (1, 2))

    assert first["host"] == second["host"]
    assert first["pid"] != second["pid"]


def test_callers_that_come_together_start_one_host(tmp_path: Path) -> None:
    code = "report(host=host)"
    requests = [
        a_request(tmp_path, code, number=n, env={"STANDIN_PRELOAD": "time.sleep(0.3)"})
        for n in range(3)
    ]
    callers = [a_caller(request) for request in requests]

    assert [caller.wait() for caller in callers] == [0] * 3
    reports = [Path(request.workdir, "report.json").read_text() for request in requests]
    assert len({json.loads(report)["host"] for report in reports}) == 1


def test_a_host_that_was_killed_is_lost_with_its_cell(tmp_path: Path) -> None:
    code = "child = subprocess.Popen(['setsid', 'sleep', '600']); report(child=child.pid)\n"
    code += "os.kill(host, signal.SIGKILL); time.sleep(600)"

    attempt = run(a_request(tmp_path, code))

    assert attempt["exit"]["host_lost"]
    assert eventually(lambda: not runs(attempt["report"]["child"]))


def test_a_host_that_was_killed_is_started_anew(tmp_path: Path) -> None:
    code = "report(host=host)"
    first = run(a_request(tmp_path, code))["report"]["host"]
    os.kill(first, signal.SIGKILL)

    second = run(a_request(tmp_path, code))["report"]["host"]

    assert second != first
    assert runs(second)


def test_a_host_that_does_not_answer_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_sockets, "ANSWER_S", 0.5)
    code = "report(host=host)"
    first = run(a_request(tmp_path, code))["report"]["host"]
    os.kill(first, signal.SIGSTOP)

    second = run(a_request(tmp_path, code))["report"]["host"]

    assert second != first
    assert eventually(lambda: not runs(first))


@pytest.mark.parametrize("isolation", list(Isolation))
def test_a_killed_caller_takes_its_cell_along(tmp_path: Path, isolation: Isolation) -> None:
    request = a_request(tmp_path, HANG, isolation=isolation)
    caller = a_caller(request)
    host, *cell = _pids(request)
    assert all(runs(pid) for pid in (host, *cell))

    caller.kill()
    caller.wait()

    assert eventually(lambda: not any(runs(pid) for pid in cell))
    if isolation is Isolation.COLD:
        assert eventually(lambda: not runs(host))
    else:
        assert runs(host)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Also where the tests run in the background of a shell, which has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_a_cancelled_caller_takes_its_cell_along(tmp_path: Path) -> None:
    request = a_request(tmp_path, HANG)
    pids: list[int] = []

    def cancel() -> None:
        pids.extend(_pids(request))
        # As Ray does: no signal, which would wake whatever the main thread waits for.
        _thread.interrupt_main()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(KeyboardInterrupt):
        run(request)
    canceller.join()

    host, *cell = pids
    assert runs(host)
    assert not any(runs(pid) for pid in cell)


def test_a_host_goes_when_its_raylet_does(tmp_path: Path) -> None:
    request = a_request(tmp_path, HANG)
    raylet = a_raylet(request)
    pids = _pids(request)
    worker = psutil.Process(raylet.pid).children()[0]

    raylet.kill()
    raylet.wait()

    assert eventually(lambda: not any(runs(pid) for pid in pids))
    worker.wait(10)


def test_an_idle_host_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_boot, "IDLE_S", 0.2)
    host = run(a_request(tmp_path, "time.sleep(0.4); report(host=host)"))["report"]["host"]

    assert eventually(lambda: not runs(host))
    assert eventually(lambda: started_for(tmp_path) == [])


def test_what_a_cell_orphaned_is_not_left_as_a_zombie(tmp_path: Path) -> None:
    code = """
        orphan = "import os; os.fork() or os._exit(0); print(os.getpid())"
        out = subprocess.run([sys.executable, "-c", orphan], stdout=subprocess.PIPE).stdout
        time.sleep(0.3)
        report(orphan=int(out))
    """
    orphan = run(a_request(tmp_path, code))["report"]["orphan"]

    assert eventually(lambda: not psutil.pid_exists(orphan))


@pytest.fixture
def runtime_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path, as sockets need it."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        root = runtime_folder.root()
        root.mkdir(mode=0o700)
        yield root


def test_a_folder_that_others_can_enter_is_refused(runtime_root: Path) -> None:
    runtime_root.chmod(0o755)

    with pytest.raises(NodeError, match="only this user"):
        runtime_folder.current()


def test_folders_of_raylets_that_are_gone_are_removed(runtime_root: Path) -> None:
    (runtime_root / "1-999999999999").mkdir()

    current = runtime_folder.current()

    assert list(runtime_root.iterdir()) == [current]


def test_a_path_too_long_for_sockets_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 80)))

    with pytest.raises(NodeError, match="set TMPDIR to a shorter one"):
        runtime_folder.current()


def _pids(request: CellRequest) -> list[int]:
    file = Path(request.workdir, "pids")
    assert eventually(file.exists)
    assert eventually(lambda: len(file.read_text().split()) == 3)
    return [int(pid) for pid in file.read_text().split()]
