"""Somebody else's text, as nothing but text in each form: what engines say, and what conf/ has."""

import html as _html
import re

_JOINER = "\N{WORD JOINER}"
"""Nobody sees it. Backslashes and entities are gone when links are looked for, and it is not."""

_LINKED = re.compile(
    r"@(?=\w)"  # people, and addresses
    r"|[#!$%&~](?=\d)|(?i:\bGH-)(?=\d)"  # issues, and what GitLab has besides
    r"|:(?=//)|(?i:\bwww)(?=\.)"  # pages
    r"|:(?=[\w+-]+:)"  # pictures
)
_MARKUP = re.compile(r"[\\`*_~<>|\[\]]")
_BLOCK = re.compile(r"^(?:(?=(#+|[+-])(\s|$)|[=-]+$).|\d+(?=[.)](\s|$)))")
_NOT_XML = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ATTACHED = re.compile(r"\[\[(?=ATTACHMENT\|)")
_TICKS = re.compile("`+")


def prose(text: str) -> str:
    """In one line of Markdown, also in a table: no markup, no link, and nobody gets mentioned."""
    line = " ".join(text.split())
    escaped = _MARKUP.sub(r"\\\g<0>", _unlinked(line).replace("&", "&amp;"))
    # Behind a backslash as well, it would open a formula.
    return _BLOCK.sub(_literal, escaped).replace("$", "<span>$</span>")


def code(text: str) -> str:
    """Of names and words to type, in one line of Markdown."""
    line = " ".join(text.split())
    fence = "`" * (1 + _longest_ticks(line))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def block(text: str) -> str:
    """Lines as they are, in Markdown."""
    fence = "`" * max(3, 1 + _longest_ticks(text))
    return f"{fence}text\n{text}\n{fence}"


def html(text: str) -> str:
    """In one line of HTML within Markdown."""
    return _html.escape(_unlinked(" ".join(text.split())), quote=False)


def xml(text: str) -> str:
    """
    XML has no way to write most control characters, surrogates, and two more. Nor does
    Jenkins get a file to attach by what an engine says.
    """
    return _ATTACHED.sub("[ [", _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _unlinked(text: str) -> str:
    return _LINKED.sub(rf"\g<0>{_JOINER}", text)


def _literal(start: re.Match[str]) -> str:
    return f"{start[0]}\\" if start[0].isdigit() else f"\\{start[0]}"


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
