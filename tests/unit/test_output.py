"""What is printed, where nobody reads it: the exit code counts."""

import os
import subprocess
import sys

import pytest

SAYS = """
import sys
from rich.console import Console
from orchestrator import __main__

def answer(words):
    sys.stdin.readline()
    for _ in range(3):
        print("said to nobody")
        Console().print("nor is this")
        Console(stderr=True).print("or this")
    return {code}

__main__.answer = answer
sys.argv[1:] = ["{command}"]
__main__.main()
"""

MAIN = [sys.executable, "-m", "orchestrator"]


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("command", ["run", "gate"])
def test_a_reader_may_leave_and_the_exit_code_counts(command: str, code: int) -> None:
    left, output = os.pipe()
    program = [sys.executable, "-c", SAYS.format(command=command, code=code)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=output, stderr=output) as process:
        os.close(left)
        os.close(output)
        process.communicate(b"go on\n", timeout=30)

    assert process.returncode == code


@pytest.mark.parametrize("closed", ["0", "1", "2"])
@pytest.mark.parametrize(("words", "code"), [("help", 0), ("no-such-command", 2)])
def test_streams_may_be_closed(closed: str, words: str, code: int) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *MAIN, words]
    done = subprocess.run(shell, check=False, capture_output=True, text=True, timeout=30)

    assert done.returncode == code
    assert "Traceback" not in done.stderr
