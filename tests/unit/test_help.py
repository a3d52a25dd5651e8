"""What the command line teaches: its help, its examples, and what it says of words it does not know."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator import commands
from orchestrator.__main__ import answer
from orchestrator.asked.compose import compose
from orchestrator.asked.conf_files import CONF
from orchestrator.commands import COMMANDS, run
from orchestrator.commands import help as helping
from orchestrator.errors import EXIT_CODES, RunError

WIDTH = 110
MINE = "suite=mine"
"""A suite of the reader's own, which no check can know."""


def told(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = answer(words)
    said = capsys.readouterr()
    return code, " ".join((said.err or said.out).split())


@pytest.fixture
def overview(capsys: pytest.CaptureFixture[str]) -> str:
    assert answer(["--help"]) == 0
    return capsys.readouterr().out


def test_help_has_first_commands_of_three_people_that_exist(overview: str) -> None:
    assert len(helping.FIRST_STEPS) == 3
    for person, steps in helping.FIRST_STEPS.items():
        assert person in overview
        for words, _ in steps:
            assert f"vllm-matrix {words} " in overview
            assert shlex.split(words)[0] in COMMANDS


def test_help_has_every_command_place_and_exit_code(overview: str) -> None:
    assert all(f"  {command} " in overview for command in COMMANDS)
    assert str(CONF).removeprefix(str(Path.home())) in overview
    assert all(f"  {code} " in overview for code in EXIT_CODES)
    assert max(map(len, overview.splitlines())) <= WIDTH


def test_every_error_has_an_exit_code_that_is_said() -> None:
    assert {RunError.exit_code, *(error.exit_code for error in RunError.__subclasses__())} <= {
        *EXIT_CODES
    }


def test_every_module_of_a_command_is_known() -> None:
    [folder] = commands.__path__
    modules = {file.stem for file in Path(folder).glob("*.py") if "def main(" in file.read_text()}

    assert modules == {*COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_help_says_what_it_does_and_has_examples(command: str) -> None:
    parser = helping.of(command)
    assert parser.prog == f"vllm-matrix {command}"
    assert parser.description
    assert parser.examples
    for action in parser.takes():
        assert action.help or action.choices, f"{command} says nothing of {action.dest}"
    for words in parser.examples:
        name, *rest = shlex.split(words.partition(" > ")[0])
        assert name == command
        parser.parse_intermixed_args(rest)


@pytest.mark.parametrize("command", ["run", "plan"])
def test_examples_that_choose_cells_make_sense(command: str) -> None:
    for words in helping.of(command).examples:
        hydras = helping.of(command).for_hydra(shlex.split(words)[1:])[1]
        if MINE not in hydras and "--cfg=job" not in hydras:
            assert compose(hydras)


def test_help_of_a_command_is_asked_in_two_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["help", "gate"]) == 0
    by_name = capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        answer(["gate", "--help"])

    assert by_name == capsys.readouterr().out
    assert "vllm-matrix gate latest" in by_name


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["gaet", "latest"], 'Did you mean "gate"?'),
        (["help", "gatee"], 'Did you mean "gate"?'),
        (["report", "latest", "--fromat", "md"], '--fromat. Did you mean "--format"?'),
        (["report", "latest", "--format", "jnuit"], 'Did you mean "junit"?'),
        (["plan", "suite=demo", "--confg-dir", "x"], '--confg-dir. Did you mean "--config-dir"?'),
        (["suite=demo", "--mutlirun"], '--mutlirun. Did you mean "--multirun"?'),
        (["gate"], "the following arguments are required: RUN"),
        (["gate", "latest", "more"], "more: it takes no further word"),
    ],
)
def test_a_word_that_is_not_known_is_told_with_the_nearest_one(
    words: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = told(words, capsys)

    assert code == 2
    assert nearest in said


def test_every_flag_that_is_not_known_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = told(["report", "latest", "--fromat=md", "--runs"], capsys)

    assert code == 2
    assert "--fromat=md. Did you mean" in said
    assert "- --runs." in said


def test_flags_and_choices_may_come_in_any_order() -> None:
    words = ["hardware=cpu", "--config-dir", "mine", "model=llama,gemma3", "-m"]

    chosen, hydras = run.parser().for_hydra(words)

    assert chosen.config_dir == "mine"
    assert hydras == ["--multirun", "--config-dir=mine", "hardware=cpu", "model=llama,gemma3"]


def test_no_word_at_all_is_answered_with_the_help_and_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert answer([]) == 2
    assert "usage: vllm-matrix COMMAND" in capsys.readouterr().out


def test_a_mistake_of_ours_does_not_read_as_blocked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "compose", lambda _: 1 / 0)

    assert answer(["run", "suite=demo"]) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_the_version_is_the_packages(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer([word]) == 0
    assert capsys.readouterr().out.startswith("vllm-matrix 0.")
