"""One secret as it may stand in a log."""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_UNQUOTED_BY_REQUESTS = "!#$%&'()*+,/:;=?@[]~"


def of(secret: str) -> Iterator[str]:
    """As shells, JSON, Python, HTML, URLs and headers write it."""
    content = secret.encode(errors="surrogatepass")
    for text in (secret, *_escaped(secret), repr(content)[2:-1]):
        yield text
        yield html.escape(text)
        yield html.escape(text, quote=False)
    for unquoted in ("/", "", _UNQUOTED_BY_REQUESTS):
        yield from _in_a_url(quote(content, safe=unquoted))
    yield from _in_a_url(quote_plus(content))
    for offset in range(3):
        encoded = _base64(content, offset)
        yield encoded
        yield encoded.translate(str.maketrans("+/", "-_"))


def _escaped(text: str) -> Iterator[str]:
    """In a string of JSON or Python; and in such a string within another."""
    for escaped in (_json(text), json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]):
        yield escaped
        yield _json(escaped)
    yield ascii(text)[1:-1]


def _json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _in_a_url(quoted: str) -> Iterator[str]:
    yield quoted
    yield re.sub("%..", lambda escape: escape[0].lower(), quoted)


def _base64(secret: bytes, offset: int) -> str:
    """The letters that do not depend on what stands before or behind the secret."""
    first, last = -(-offset * 8 // 6), (offset + len(secret)) * 8 // 6
    return base64.b64encode(bytes(offset) + secret).decode()[first:last]
