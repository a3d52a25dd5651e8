"""
What nobody may read in a log, a record or a message, and the same text without it.

A secret is the value of a variable or key whose name says so, a password in a URL, or
text of a shape that only credentials have.
"""

import base64
import builtins
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

from jobs import secret_shapes

MASK = "***"

NAMES_VARIABLE = "MATRIX_HIDDEN_NAMES"
"""Tells the processes of a cell which further names hold secrets, with commas between them."""

SHORTEST = 6
"""Characters. What is shorter, or a plain word, stands in any text and is not searched for."""

PLAIN_WORDS = frozenset(
    {
        *("always", "anonymous", "cached", "default", "disable", "disabled", "enable", "enabled"),
        *("ignore", "ignored", "inherit", "keyring", "optional", "prefer", "preferred", "public"),
        *("password", "required", "secret", "system", "unknown", "unlimited"),
    }
)

_SECRET_NAME = re.compile(
    r"(?!secrets\Z)"  # our own key holds names, not values
    r"(?i:.*(?:secret|passw(?:or)?d|passphrase|credential|api_?key|private_?key).*"
    r"|(?:.*[_.-])?(?:access_?key(?:_?id)?|accesstoken|token|key|auth|bearer|cookie|dsn|pat|pass)"
    r"|.+[_.-]pwd"
    r"|.*(?:[_.-]|\A)token[_.-](?!path|file|dir|id|ids|type|count).*)"
    r"(?:[_.-]?\d+)?"
)
_PLACES = re.compile(r"(?i).*[_.-](?:path|file|dir|folder|home|sock|name|url|type|mode)")
"""Names that end so say where a secret lies, or of which kind it is."""

LONGEST_HELD, OVERLAP = 65536, 4096
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "


@dataclass(frozen=True, kw_only=True, slots=True)
class Redactor:
    forms: tuple[str, ...]
    """The secrets as they may be written, the longest first."""

    names: tuple[str, ...]
    """Further names, or endings of names, that hold secrets."""

    def __or__(self, other: "Redactor") -> "Redactor":
        return Redactor(
            forms=_longest_first({*self.forms, *other.forms}),
            names=tuple(dict.fromkeys([*self.names, *other.names])),
        )

    def text(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, MASK)
        for shape in secret_shapes.IN_TEXT:
            text = shape.sub(_masked, text)
        return text

    def bytes(self, content: builtins.bytes) -> builtins.bytes:
        """Of whole lines: `Stream` is for a log that arrives in pieces."""
        for form in self.forms:
            content = content.replace(form.encode(errors="surrogatepass"), MASK.encode())
        for shape in secret_shapes.IN_BYTES:
            content = shape.sub(_masked_bytes, content)
        return content

    def value(self, value: Any, name: str = "") -> Any:
        """
        The same structure of mappings and sequences, with every secret in it masked.

        Members of enumerations stay what they are: they are words of ours.
        """
        return self._shown(value, name, functools.cache(self.text))

    def _shown(self, value: Any, name: str, text: Callable[[str], str]) -> Any:
        match value:
            case Mapping():
                return {key: self._shown(inner, str(key), text) for key, inner in value.items()}
            case list() | tuple():
                return type(value)(self._shown(inner, name, text) for inner in value)
            case _ if type(value) is str:
                return MASK if value and is_secret(name, self.names) else text(value)
            case _:
                return value


class Stream:
    """A log that arrives in pieces: what may be shown of it so far."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Every line that ended, and what is too long to hold."""
        self._held += piece
        if len(self._held) > LONGEST_HELD:
            # A secret whose end has not come yet must stay in one piece.
            self._held = self._redactor.bytes(self._held)
            return self._take(len(self._held) - OVERLAP)
        end = self._held.rfind(b"\n") + 1
        if _KEY_BEGINS in self._held[:end] and _KEY_ENDS not in self._held:
            end = self._held.find(_KEY_BEGINS)
        return self._redactor.bytes(self._take(end))

    def rest(self) -> bytes:
        """What is left when nothing more comes."""
        return self._redactor.bytes(self._take(len(self._held)))

    def _take(self, size: int) -> bytes:
        taken, self._held = self._held[: max(0, size)], self._held[max(0, size) :]
        return taken


def redactor(holders: Mapping[str, Any], more: Iterable[str] = ()) -> Redactor:
    """
    Of the secrets that *holders* has: an environment, keyword arguments, or several of
    them, each under a name of its own.
    """
    names = tuple(more)
    secrets = {secret for secret in _secrets_in(holders, "", names) if _can_be_searched(secret)}
    forms = {form for secret in secrets for form in _forms(secret)}
    return Redactor(forms=_longest_first(forms), names=names)


def of_this_process() -> Redactor:
    """Of the environment that a process of a cell has."""
    names = os.environ.get(NAMES_VARIABLE, "").split(",")
    return redactor(os.environ, filter(None, names))


@functools.cache
def is_secret(name: str, more: tuple[str, ...] = ()) -> bool:
    """Whether the value of a variable, option or key of this name is nobody's business."""
    endings = tuple(ending.upper() for ending in more)
    if name.upper().endswith(endings):
        return True
    return bool(_SECRET_NAME.fullmatch(name)) and not _PLACES.fullmatch(name)


def _masked(match: re.Match[str]) -> str:
    return match[0][: _introduction(match)] + MASK


def _masked_bytes(match: re.Match[bytes]) -> bytes:
    return match[0][: _introduction(match)] + MASK.encode()


def _introduction(match: re.Match[Any]) -> int:
    return match.end(1) - match.start() if match.re.groups else 0


def _secrets_in(value: Any, name: str, more: tuple[str, ...]) -> Iterator[str]:
    match value:
        case Mapping():
            for key, inner in value.items():
                yield from _secrets_in(inner, str(key), more)
        case list() | tuple():
            for inner in value:
                yield from _secrets_in(inner, name, more)
        case str():
            if is_secret(name, more):
                yield value
                # In a log every line of a key comes by itself.
                yield from value.splitlines()
            yield from secret_shapes.passwords_of_urls(value)
        case _:
            pass


def _longest_first(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _can_be_searched(secret: str) -> bool:
    if len(secret) < SHORTEST or secret.lower() in PLAIN_WORDS:
        return False
    # A file that holds a secret is not one.
    return not (secret.startswith(("/", "~")) and os.path.exists(os.path.expanduser(secret)))  # noqa: PTH110, PTH111


def _forms(secret: str) -> Iterator[str]:
    """As it is written in shells, JSON, Python, URLs and headers."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    content = secret.encode(errors="surrogatepass")
    yield quote(content)
    yield quote(content, safe="")
    yield quote_plus(content)
    for offset in range(3):
        encoded = _base64(content, offset)
        yield encoded
        yield encoded.translate(str.maketrans("+/", "-_"))


def _base64(secret: bytes, offset: int) -> str:
    """The letters that do not depend on what stands before or behind the secret."""
    first, last = -(-offset * 8 // 6), (offset + len(secret)) * 8 // 6
    return base64.b64encode(bytes(offset) + secret).decode()[first:last]
