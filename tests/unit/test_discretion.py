"""What is printed holds no secret that was known by then."""

import io
import os
import sys

import pytest

from jobs.secrets import NAMES_VARIABLE, of_this_process, redactor
from orchestrator import discretion
from orchestrator.discretion import Discreet


def printed(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    monkeypatch.setitem(os.environ, "MY_TOKEN", "planted-before")
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, "ascii", line_buffering=True))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    discretion.begin()
    return content


def test_values_of_the_environment_and_all_that_is_learnt_later_are_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = printed(monkeypatch)
    discretion.hide({"llama": {"env": {"X_LICENCE": "planted-later"}}}, ["_LICENCE"])
    discretion.hide({"api_key": "planted-last"})

    sys.stdout.write("with planted-before planted-later ['planted-last']\n")

    assert content.getvalue() == b"with *** *** ['***']\n"


def test_what_a_stream_can_not_say_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    content = printed(monkeypatch)
    assert isinstance(sys.stdout, Discreet)
    assert sys.stdout.write("ä planted-before\n") == len("ä planted-before\n")
    assert content.getvalue() == b"? ***\n"


def test_streams_that_are_no_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream)

    discretion.begin()

    assert sys.stdout is sys.stderr is stream


def test_two_redactors_are_one() -> None:
    both = redactor({"A_TOKEN": "planted"}, ["_A"]) | redactor({"B_TOKEN": "planted-more"}, ["_B"])

    assert both.text("planted-more planted") == "*** ***"
    assert both.value({"MY_A": "1", "MY_B": "2", "MY_C": "3"}) == {
        "MY_A": "***",
        "MY_B": "***",
        "MY_C": "3",
    }


def test_a_process_of_a_cell_knows_the_further_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MY_LICENCE", "planted-value")
    assert of_this_process().text("planted-value") == "planted-value"

    monkeypatch.setitem(os.environ, NAMES_VARIABLE, "_LICENCE,OTHER")
    assert of_this_process().text("planted-value") == "***"


@pytest.mark.parametrize(
    "word",
    [
        "model.llama.env={S3_SECRET:planted-word",
        "model.llama.env={S3_SECRET: 'planted-word'",
        "engine_args={a: [{hf_token: planted-word}]}}",
        "hf_token=planted-word",
        "env={A: b, S3_SECRET: planted planted-word}",
        "env={S3_SECRET: 'planted, planted-word",
        'x={"api_key"= "planted-word"',
        "env={MY_LICENCE:planted-word",
    ],
)
def test_what_is_typed_is_hidden_however_wrong_it_is(
    monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    content = printed(monkeypatch)
    discretion.hide_typed(["secrets=[_LICENCE]", word])

    sys.stdout.write(f"{word}: no viable alternative at input\n")

    assert b"planted" not in content.getvalue()


def test_words_of_ours_are_said_although_a_secret_has_the_same_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = printed(monkeypatch)
    discretion.hide({"DB_PASSWORD": "passed", "MY_KEY": "planted-later"})
    discretion.hide({}, words=["passed"])

    sys.stdout.write("passed with planted-later\n")

    assert content.getvalue() == b"passed with ***\n"


def test_somebody_elses_text_gives_a_terminal_no_orders() -> None:
    said = "\x1b[2J\x1b[1;1H\x1b[32mgate ships\x1b[0m\x07\r\nat 1%\rat 2%\x9b1m\u202e\tä"
    title = "\x1b]0;a title\x07left"

    assert discretion.plain(said) == "gate ships\ufffd\nat 1%\nat 2%\ufffd1m\ufffd\tä"
    assert discretion.plain({"a": [title, 1, None]}) == {"a": ["left", 1, None]}
