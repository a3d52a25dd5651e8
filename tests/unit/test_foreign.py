"""Text of engines stays text in each form of report, whatever it says."""

import re
import string
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from orchestrator.reports import foreign

JOINER = "\N{WORD JOINER}"
RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

LINKED_BY_GITHUB = re.compile(
    r"(?<![\w/])@\w|#\d|(?i:\bgh-)\d|https?://|(?i:\bwww)\.|:[\w+-]+:|\$[^$]+\$"
)
"""What it makes of text, wherever it is not code."""

SIGNS = string.punctuation + "aw1 \n\tGH-"
TROUBLE = [
    *("@torch", "#12", "GH-7", "https://x.y", "www.x.y", ":tada:", "$x$", "<b>", "</details>"),
    *("```", "~~~", "| --- |", "- x", "1. x", "# x", "---", "===", "&lt;", "<!-- x", "[a](b)"),
    *("![a](b)", "\\|", "\\", "> x", "- [ ] x", "    x", "::error::x", "\x00", "\u202e", "![[a"),
]
text = st.lists(st.text(SIGNS, max_size=4) | st.sampled_from(TROUBLE)).map("".join)


def inlines(markdown: str) -> list[list[Token]]:
    return [token.children or [] for token in RENDERER.parse(markdown) if token.type == "inline"]


def shown(tokens: list[Token]) -> str:
    """Without the one piece of HTML that is ours."""
    ours = {"<span>", "</span>"}
    assert {token.content for token in tokens if token.type == "html_inline"} <= ours
    assert {token.type for token in tokens} <= {"text", "html_inline", "text_special"}
    return "".join(token.content for token in tokens if token.type != "html_inline")


def as_one_line(text: str) -> str:
    return " ".join(text.replace("\x00", "\ufffd").split())


@given(text)
def test_prose_is_read_as_it_was_written(text: str) -> None:
    [line, *others] = inlines(f"- {foreign.prose(text)}") or [[]]

    assert shown(line).replace(JOINER, "") == as_one_line(text)
    assert not others


@given(text)
def test_prose_stays_in_its_cell_of_a_table(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {foreign.prose(text)} | end |"

    [_, _, cell, end] = inlines(table)
    assert shown(cell).replace(JOINER, "") == as_one_line(text)
    assert shown(end) == "end"


@given(text)
def test_prose_mentions_nobody_and_links_to_nothing(text: str) -> None:
    html = RENDERER.render(foreign.prose(text)).replace("<span>$</span>", " ")
    shown = re.sub(r"<[^>]+>", "", html).replace("&lt;", "<").replace("&amp;", "&")

    assert not LINKED_BY_GITHUB.search(shown)


@given(text)
def test_code_and_blocks_hold_their_text_as_it_is(text: str) -> None:
    [line] = inlines(f"x {foreign.code(text)} x")
    [fence] = RENDERER.parse(foreign.block(text))

    assert [token.content for token in line if token.type == "code_inline"] == (
        [as_one_line(text)] if as_one_line(text) else []
    )
    assert fence.type == "fence"
    assert fence.content == text.replace("\x00", "\ufffd").replace("\r\n", "\n") + "\n"


@given(text)
def test_a_title_of_html_is_text(text: str) -> None:
    [block] = RENDERER.parse(f"<summary>{foreign.html(text)}</summary>")

    inside = block.content.removeprefix("<summary>").removesuffix("</summary>")
    assert "<" not in inside
    assert not re.search(r"(?<![\w/])@\w|#\d", inside)


@pytest.mark.parametrize("text", ["3.5", "-", "1.5 GiB", "LBNHC", "-1"])
def test_what_needs_no_care_is_left_as_it_is(text: str) -> None:
    assert foreign.prose(text).replace("\\-", "-") == text


@given(st.text())
def test_xml_can_hold_whatever_was_said(text: str) -> None:
    element = ET.Element("failure", message=foreign.xml(text))
    element.text = foreign.xml(text)

    ET.fromstring(ET.tostring(element))


def test_a_message_cannot_attach_a_file_of_the_ci_machine() -> None:
    assert "[[ATTACHMENT|" not in foreign.xml("[[ATTACHMENT|/etc/shadow]]")
