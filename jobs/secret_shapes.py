"""
Shapes that only credentials have, whoever wrote them down.

Each begins with a character or word that is rare in logs, and repeats nothing without a
bound before it is sure: so a search takes time in proportion to the text, and little of
it. A group holds what introduces a secret and stays.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

_ISSUED = (
    ("hf_", "[A-Za-z0-9]{16,}"),
    ("api_org_", "[A-Za-z0-9]{16,}"),
    ("sk-", "[A-Za-z0-9_-]{16,}"),
    ("nvapi-", "[A-Za-z0-9_-]{16,}"),
    ("gh[opsur]_", "[A-Za-z0-9]{16,}"),
    ("github_pat_", "[A-Za-z0-9_]{16,}"),
    ("glpat-", "[A-Za-z0-9_-]{16,}"),
    ("A(?:KI|SI)A", "[A-Z0-9]{16}"),
    ("AIza", "[A-Za-z0-9_-]{30,}"),
    ("xox[a-z]-", "[A-Za-z0-9-]{10,}"),
    ("pypi-", "[A-Za-z0-9_-]{32,}"),
    ("eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
)
"""How the tokens of those who issue many begin, and go on."""

_KEY_BLOCK = (
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"
    r"[^-\"']{0,16384}(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?"
)

_IN_URL = r"(://)[^\s/?#\"'<>]{1,512}(?=@)"

_NAMES = (
    *("token", "secret", "password", "passwd", "passphrase", "credential", "credentials"),
    *("api[_-]key", "apikey", "access[_-]key", "private[_-]key", "secret[_-]key"),
    *("authorization", "signature", "cookie", "(?-i:_KEY)", "[?&]key", "[?&]sig", "[?&]auth"),
)
_CLOSED = ("", " ", r"[\"']", r"\\[\"']")
"""What stands between a name and its colon or equals sign."""

_BEHIND_A_NAME = "|".join(f"(?<=(?i:{name}){closed}[:=])" for name in _NAMES for closed in _CLOSED)
_VALUE = r"[^\s\"'&,;<>(){}\[\]\\]"
_ASSIGNED = (
    rf"[:=](?:{_BEHIND_A_NAME})(?:(?<==)|(?= ?\\?[\"'])|(?=[^\n]{{0,32}}\d))"
    r"( ?\\?[\"']?(?:(?i:basic|bearer|token|digest) )?)"
    rf"(?!(?i:none|null|true|false)\b){_VALUE}{{6,}}"
)

_BEARER = rf"(earer (?=[^\s]{{0,64}}\d)){_VALUE}{{8,}}"

_OPTION = rf"(--[a-z-]{{0,40}}(?:token|key|secret|password)[ =][\"']?)(?!-){_VALUE}{{3,}}"

_UNMISTAKABLE = (
    *(f"{start}(?<![A-Za-z0-9_]{start}){rest}" for start, rest in _ISSUED),
    *(_KEY_BLOCK, _IN_URL),
)
_ALL = (*_UNMISTAKABLE, _OPTION, _ASSIGNED, _BEARER)

IN_CODE = tuple(re.compile(shape) for shape in _UNMISTAKABLE)
"""Code assigns to many a *token* what is no secret."""

IN_TEXT = tuple(re.compile(shape) for shape in _ALL)
IN_BYTES = tuple(re.compile(shape.encode()) for shape in _ALL)

_USER_AND_PASSWORD = re.compile(r"://([^\s/?#\"'<>:@]{0,256}):?([^\s/?#\"'<>]{0,512})@")


def credentials_of_urls(text: str) -> Iterator[str]:
    """Of `scheme://user:password@host`, where the user may be a token: as written, and as meant."""
    for found in _USER_AND_PASSWORD.findall(text):
        for credential in filter(None, found):
            yield credential
            yield unquote(credential)


_NAMED = re.compile(r"""([\w.-]{1,128}) ?[:=] ?("[^"]*|'[^']*|[^,{}\[\]]+)""")


def named(text: str) -> Iterator[tuple[str, str]]:
    """
    Every `name: value` and `name=value` in it, whatever language it is, or is meant to be;
    also each word of the value.
    """
    for name, quoted in _NAMED.findall(text):
        value = quoted.strip("\"' ")
        yield from ((name, part) for part in (value, *value.split()))
