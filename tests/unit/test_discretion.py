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
