"""
What a supervisor does for a run, shown with runs that are a few lines of Python. Its
patience is cut short; the real one is what tests/ray has to do with.
"""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jobs import processes

PROGRAM = """
import fcntl, os, signal, subprocess, sys, termios, time
from orchestrator import __main__, supervise
from orchestrator.running import vital
from pathlib import Path

supervise.ONE_PRESS_S, supervise.AT_ONCE_S, supervise.GRACE_S = 0.2, 0.3, {grace_s}
supervise.IN_ORDER_S, supervise.TICK_S, vital.LOOK_EVERY_S = {in_order_s}, 0.1, 0.1

def say(*words):
    print(*words, flush=True)

def wait():
    say("waiting", os.getpid())
    # Not in one sleep: a signal that comes just before it begins would be heard after it.
    for _ in range(600):
        time.sleep(0.1)

def answer(words):
    {body}

if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
__main__.answer = answer
sys.argv[1:] = ["run"]
__main__.main()
"""

HEEDS = """
    try:
        wait()
    except KeyboardInterrupt:
        say("stopped in good order")
        return 130
"""

DEAF = """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wait()
"""


Supervisor = subprocess.Popen[str]
Supervise = Callable[..., Supervisor]


@pytest.fixture
def supervise() -> Iterator[Supervise]:
    """Starts a supervisor whose run is the body of a function."""
    with contextlib.ExitStack() as started:

        def start(
            body: str,
            *,
            terminal: int | None = None,
            grace_s: float = 0.3,
            in_order_s: float = 60.0,
            as_its_parent: Callable[[], object] | None = None,
        ) -> Supervisor:
            program = PROGRAM.format(body=body.strip(), grace_s=grace_s, in_order_s=in_order_s)
            process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=as_its_parent,  # noqa: PLW1509  there are no threads
            )
            started.callback(process.kill)
            return started.enter_context(process)

        yield start


def its_run(supervisor: Supervisor) -> int:
    """The process id of the run, once it waits."""
    assert supervisor.stdout is not None
    word, pid = supervisor.stdout.readline().split()
    assert word == "waiting"
    return int(pid)


def gone(pid: int) -> bool:
    """Or only its parent has not looked yet."""
    end = time.monotonic() + 10
    while processes.is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not processes.is_running(pid)


@pytest.mark.parametrize("code", [0, 130])
def test_the_answer_of_the_run_is_the_exit_code(supervise: Supervise, code: int) -> None:
    run = supervise(f"return {code}")

    assert run.wait() == code
    assert run.communicate() == ("", "")


def test_a_run_that_ends_without_an_answer_is_infrastructure(supervise: Supervise) -> None:
    """As Ray's C++ half does it, which exits with the code of a blocked release."""
    run = supervise("os._exit(1)")
    _, said = run.communicate()

    assert run.returncode == 4
    assert "ended with 1" in said
    assert "the same command goes on" in " ".join(said.split())


def test_a_killed_run_is_infrastructure_too(supervise: Supervise) -> None:
    run = supervise("wait()")
    os.kill(its_run(run), signal.SIGKILL)
    _, said = run.communicate()

    assert run.returncode == 4
    assert "SIGKILL" in said


def test_a_mistake_of_our_own_keeps_its_traceback_and_blames_nobody(supervise: Supervise) -> None:
    run = supervise("raise LookupError('a mistake')")
    _, said = run.communicate()

    assert run.returncode == 70
    assert "LookupError: a mistake" in said
    assert "error: " not in said


def test_usage_that_is_wrong_keeps_its_exit_code(supervise: Supervise) -> None:
    run = supervise("sys.exit(2)")

    assert run.wait() == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_once(supervise: Supervise, number: signal.Signals) -> None:
    body = f"""
    came = []
    signal.signal({number.value}, lambda *_: came.append(1))
    say("waiting", os.getpid())
    time.sleep(0.1)
    time.sleep(0.1)
    say(len(came))
    return 0
    """
    run = supervise(body)
    its_run(run)
    # As `timeout` does it: the process, and then its group.
    run.send_signal(number)
    os.killpg(run.pid, number)
    said, _ = run.communicate()

    assert said == "1\n"
    assert run.returncode == 0


def test_ctrl_c_on_a_terminal_reaches_the_run_once_and_spares_what_it_started(
    supervise: Supervise,
) -> None:
    body = """
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        wait()
    except KeyboardInterrupt:
        time.sleep(0.2)
        say("sleeper", sleeper.poll())
        sleeper.kill()
        return 130
    """
    main, terminal = pty.openpty()
    run = supervise(body, terminal=terminal)
    its_run(run)

    os.write(main, b"\x03")
    said, _ = run.communicate()

    os.close(main)
    os.close(terminal)
    assert said == "sleeper None\n"
    assert run.returncode == 130


def test_a_run_that_takes_the_keyboard_is_asked_and_has_its_time(supervise: Supervise) -> None:
    """As one that is followed on a cluster."""
    body = """
    from orchestrator.remote import foreground
    supervisor = os.getpgid(os.getppid())
    with foreground.taken():
        try:
            wait()
        except KeyboardInterrupt:
            say("asks", foreground.can_ask())
            say("is told", sys.stdin.readline().strip())
    say("gave it back", os.tcgetpgrp(0) == supervisor)
    return 0
    """
    main, terminal = pty.openpty()
    run = supervise(body, terminal=terminal, in_order_s=0.3)
    its_run(run)

    os.write(main, b"\x03")
    assert run.stdout is not None
    assert run.stdout.readline() == "asks True\n"
    time.sleep(1)
    os.write(main, b"d\n")
    said, _ = run.communicate(timeout=10)

    os.close(main)
    os.close(terminal)
    assert said == "is told d\ngave it back True\n"
    assert run.returncode == 0


def test_the_keyboard_comes_back_from_a_run_that_was_killed(supervise: Supervise) -> None:
    body = """
    from orchestrator.remote import foreground
    with foreground.taken():
        wait()
    """
    main, terminal = pty.openpty()
    run = supervise(body, terminal=terminal, grace_s=3.0)
    taken_by = its_run(run)
    assert os.tcgetpgrp(main) == taken_by

    os.kill(taken_by, signal.SIGKILL)
    end = time.monotonic() + 10
    while os.tcgetpgrp(main) == taken_by and time.monotonic() < end:
        time.sleep(0.01)

    assert os.tcgetpgrp(main) != taken_by
    assert run.wait(10) == 4
    os.close(main)
    os.close(terminal)


def test_a_stopped_run_that_does_not_answer_was_interrupted_all_the_same(
    supervise: Supervise,
) -> None:
    """SIGTERM while Ray is starting."""
    run = supervise("wait()")
    its_run(run)
    run.terminate()
    _, said = run.communicate()

    assert run.returncode == 130
    assert "stopped by SIGTERM" in said


def test_a_second_signal_ends_a_run_that_does_not_listen(supervise: Supervise) -> None:
    run = supervise(DEAF)
    deaf = its_run(run)
    run.send_signal(signal.SIGINT)
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)

    assert run.wait(10) == 130
    assert not psutil.pid_exists(deaf)


def test_one_signal_ends_a_run_that_does_not_get_to_an_end(supervise: Supervise) -> None:
    run = supervise(DEAF, in_order_s=0.5)
    deaf = its_run(run)
    run.send_signal(signal.SIGINT)

    assert run.wait(10) == 130
    assert not psutil.pid_exists(deaf)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_ignored_from_the_start_stays_ignored(
    supervise: Supervise, number: signal.Signals
) -> None:
    """SIGHUP by `nohup`; SIGINT in the background of a script."""
    body = """
    from orchestrator import run
    from orchestrator.kept.run_directory import RunDirectory
    with run.stoppable(RunDirectory(Path("x"))):
        say("waiting", os.getpid())
        time.sleep(0.5)
        say("to the end")
    return 0
    """
    run = supervise(body, as_its_parent=lambda: signal.signal(number, signal.SIG_IGN))
    os.kill(its_run(run), number)
    run.send_signal(number)
    said, _ = run.communicate(timeout=10)

    assert said == "to the end\n"
    assert run.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGCHLD])
def test_what_is_blocked_from_the_start_is_heard(
    supervise: Supervise, number: signal.Signals
) -> None:
    blocked = [number]
    run = supervise(HEEDS, as_its_parent=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked))
    its_run(run)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=10)

    assert said == "stopped in good order\n"
    assert run.returncode == 130


def test_a_parent_that_ignores_its_children_s_ends_does_not_matter(supervise: Supervise) -> None:
    run = supervise("return 1", as_its_parent=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))

    assert run.wait(10) == 1


def test_a_terminal_that_stops_what_writes_in_the_background_does_not_stop_the_run(
    supervise: Supervise,
) -> None:
    main, terminal = pty.openpty()
    modes = termios.tcgetattr(terminal)
    modes[3] |= termios.TOSTOP
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
    run = supervise("os.write(0, b'said'); return 0", terminal=terminal)

    assert run.wait(10) == 0
    assert os.read(main, 4) == b"said"
    os.close(main)
    os.close(terminal)


def test_a_run_that_somebody_stopped_hears_ctrl_c(supervise: Supervise) -> None:
    run = supervise(HEEDS)
    os.kill(its_run(run), signal.SIGSTOP)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=10)

    assert said == "stopped in good order\n"
    assert run.returncode == 130


def test_a_killed_supervisor_takes_the_run_along(supervise: Supervise) -> None:
    run = supervise("wait()")
    child = its_run(run)
    run.kill()

    assert gone(child)


def test_what_a_run_leaves_behind_is_ended(supervise: Supervise, tmp_path: Path) -> None:
    body = f"""
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    Path({str(tmp_path / "left")!r}).write_text(str(left.pid))
    os.kill(os.getpid(), signal.SIGKILL)
    """
    run = supervise(body)
    run.communicate()

    assert run.returncode == 4
    assert not psutil.pid_exists(int((tmp_path / "left").read_text()))


RAYLET = """
    sleep = Path({sleep!r})
    sleep.symlink_to("/bin/sleep")
    raylet = subprocess.Popen(["raylet", "60"], executable=sleep)
    raylet.send_signal(signal.SIGSTOP)
"""


def test_a_raylet_that_stays_stopped_is_killed(supervise: Supervise, tmp_path: Path) -> None:
    """Ray would wait for it without end."""
    body = RAYLET.format(sleep=str(tmp_path / "raylet")) + "    return -raylet.wait()"
    run = supervise(body)

    assert run.wait(10) == signal.SIGKILL


def test_a_raylet_that_goes_on_is_left_alone(supervise: Supervise, tmp_path: Path) -> None:
    body = (
        RAYLET.format(sleep=str(tmp_path / "raylet"))
        + """
    for _ in range(5):
        time.sleep(0.1)
        raylet.send_signal(signal.SIGCONT)
        time.sleep(0.1)
        raylet.send_signal(signal.SIGSTOP)
    return 9 if raylet.poll() else 0
    """
    )
    run = supervise(body)

    assert run.wait(10) == 0


def test_ray_s_own_that_are_slow_to_go_are_not_waited_for(supervise: Supervise) -> None:
    body = """
    subprocess.Popen(["ray::RuntimeEnvAgent", "60"], executable="/bin/sleep")
    return 0
    """
    run = supervise(body, grace_s=60)

    assert run.wait(10) == 0
