"""The small files of `assets/` as one page, with a policy that lets nothing else run."""

import base64
import hashlib
import html
import zlib
from functools import cache
from pathlib import Path
from string import Template

from orchestrator.reports.page import scripts

ASSETS = Path(__file__).parent / "assets"


def page(*, title: str, run: str, sentence: str, ships: bool, data: str) -> str:
    first, colon, rest = sentence.partition(":")
    script, style = _script(), _style()
    return Template((ASSETS / "page.html").read_text()).substitute(
        policy=_policy(script, style),
        title=html.escape(title),
        run=html.escape(run),
        answer="ships" if ships else "blocked",
        first=html.escape(first + colon),
        rest=html.escape(rest),
        style=style,
        data=_packed(data),
        script=script,
    )


def _policy(script: str, style: str) -> str:
    """Nothing is fetched, nothing but these two texts counts, and no text can become markup."""
    return (
        "default-src 'none'; "
        f"script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _packed(data: str) -> str:
    """A tenth of the size; and whatever was in it, no parser of HTML takes it for markup."""
    return base64.b64encode(zlib.compress(data.encode(), level=9)).decode()


@cache
def _style() -> str:
    return "".join(file.read_text() for file in sorted((ASSETS / "styles").glob("*.css")))


@cache
def _script() -> str:
    return scripts.joined(ASSETS / "scripts", "main")
