"""What an engine does with the secrets that it is given, nobody reads who reads of its run."""

from pathlib import Path

import pytest

from tests.ray.conftest import StartDriver
from tests.ray.driver import Driver

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(300)]

LEAKS = Path(__file__).parent / "leaks-in-load.diff"
FAILS = "cpu/gemma3/auto/v0_32_strict_cpu"

OF_THE_SHELL = {"HF_TOKEN": "planted-hf-token", "MY_CORP_LICENCE": "planted-licence"}
PLANTED = (
    *OF_THE_SHELL.values(),
    *("planted-of-a-model", "planted-argument", "planted-of-a-proxy", "planted-in-a-url"),
)
WORDS = (
    "hardware=[cpu]",
    "model=[llama,gemma3]",
    "backend=[auto]",
    "build=[v0_32_strict_cpu]",
    f"build.v0_32_strict_cpu.patches=[{LEAKS}]",
    "secrets=[_LICENCE]",
    "model.llama.env={S3_SECRET:planted-of-a-model}",
    "+model.llama.engine_args.hf_token=planted-argument",
    "model.gemma3.env={PROXY:'http://me:planted-of-a-proxy@127.0.0.1:9'}",
    "attempts=1",
)


def test_secrets_that_an_engine_was_given_are_in_no_file_message_or_title(
    drive: StartDriver,
) -> None:
    driver = drive(*WORDS, environment=OF_THE_SHELL)
    driver.probe_in("load", FAILS)
    driver.until(lambda: "***" in log_of(driver), "nothing was hidden")

    # As a run would leave it that is killed now.
    assert leaks(driver) == []
    assert titles(driver) == []

    driver.go()
    assert driver.wait() == 1
    assert leaks(driver) == []

    failure = driver.records()[FAILS]["attempt"]["report"]["failure"]
    assert failure["chain"][0]["message"] == "https://***@hub.test/ refuses *** ***"
    for words in (["explain", "latest", FAILS], ["report", "latest", "--format", "json"]):
        assert drive(*words).wait() == 0
    assert leaks(driver) == []


def test_a_mistake_is_quoted_without_the_secret_that_it_holds(drive: StartDriver) -> None:
    wrong = ("attempts=planted-hf-token", "deadline_s=planted-of-a-model", "secrets=[_LICENCE]")
    driver = drive(*WORDS[:4], WORDS[6], *wrong, environment=OF_THE_SHELL)

    assert driver.wait() == 2
    assert "attempts" in driver.output
    assert leaks(driver) == []


def log_of(driver: Driver) -> str:
    [log] = driver.folder.glob(f"runs/*/cells/{FAILS}/1/probe.log")
    return log.read_text()


def leaks(driver: Driver) -> list[str]:
    """Of the run directory and of all that was printed; with a few letters of base64."""
    files = [path for path in driver.folder.rglob("*") if path.is_file()]
    return [
        f"{secret} in {path}"
        for path in files
        for secret in (*PLANTED, "cGxhbnRlZC")
        if secret in path.read_text(errors="replace")
    ]


def titles(driver: Driver) -> list[str]:
    """Of what the run started. What somebody types on a command line is there to be seen."""
    commands = {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in driver.processes()
    }
    return [
        command
        for command in commands.values()
        if "orchestrator" not in command and any(secret in command for secret in PLANTED)
    ]
