"""
What nobody may read in a log, a record or a message, and the same text without it.

A secret is the value of a variable or key whose name says so, a password in a URL, or
text of a shape that only credentials have.
"""

import builtins
import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobs import secret_shapes, secret_spellings
from jobs.contract.attempts import Timeout
from jobs.contract.terms import Check, EngineMode, Isolation, Phase

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
        # Of URLs.
        *("__token__", "gitlab-ci-token", "oauth2", "x-access-token", "x-oauth-basic"),
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

_WORDS = frozenset({*Check, *EngineMode, *Isolation, *Phase, *Timeout})
"""What processes say to each other in."""

_CODE = "patches"
"""The key that patches have in all that we write."""

LONGEST_HELD, OVERLAP = 65536, 4096
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "


@dataclass(frozen=True, kw_only=True, slots=True)
class Redactor:
    forms: tuple[str, ...]
    """The secrets as they may be written, the longest first."""

    names: tuple[str, ...] = ()
    """Further names, or endings of names, that hold secrets."""

    ours: frozenset[str] = _WORDS
    """Words that everybody may read, whatever has the same value, or a part of it."""

    def __or__(self, other: "Redactor") -> "Redactor":
        ours = self.ours | other.ours
        return Redactor(
            forms=_longest_first(_not_in(ours, {*self.forms, *other.forms})),
            names=tuple(dict.fromkeys([*self.names, *other.names])),
            ours=ours,
        )

    def text(self, text: str) -> str:
        return self._without(secret_shapes.IN_TEXT, text)

    def code(self, text: str) -> str:
        """Less the secrets that are known, and what nothing but a secret looks like."""
        return self._without(secret_shapes.IN_CODE, text)

    def _without(self, shapes: Iterable[re.Pattern[str]], text: str) -> str:
        for form in self.forms:
            text = text.replace(form, MASK)
        for shape in shapes:
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

        Words of ours stay what they are, since readers of the structure go by them.
        """
        return _Shown(self).value(value, name)


class _Shown:
    """One structure: what stands in it several times is looked through once."""

    def __init__(self, redactor: Redactor) -> None:
        self._is_secret = functools.cache(lambda name: is_secret(name, redactor.names))
        self._text = functools.cache(redactor.text)
        self._code = redactor.code
        self._ours = redactor.ours

    def value(self, value: Any, name: str, *, is_code: bool = False) -> Any:
        if isinstance(value, dict):
            return {
                key: self.value(inner, str(key), is_code=is_code or key == _CODE)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(self.value(inner, name, is_code=is_code) for inner in value)
        if value is None or value == "" or isinstance(value, bool | StrEnum):
            return value
        if isinstance(value, str | int | float) and self._is_secret(name):
            return MASK
        if not isinstance(value, str) or value in self._ours:
            return value
        return self._code(value) if is_code else self._text(value)


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


def redactor(
    holders: Mapping[str, Any], more: Iterable[str] = (), ours: Iterable[str] = ()
) -> Redactor:
    """
    Of the secrets that *holders* has: an environment, keyword arguments, or several of
    them, each under a name of its own.
    """
    names = tuple(more)
    secrets = {secret for secret in _secrets_in(holders, "", names) if _can_be_searched(secret)}
    forms = tuple({form for secret in secrets for form in secret_spellings.of(secret)})
    return Redactor(forms=forms, names=names) | Redactor(forms=(), ours=_WORDS.union(ours))


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
            yield from secret_shapes.credentials_of_urls(value)
        case int() | float() if is_secret(name, more):
            yield str(value)
        case _:
            pass


def _not_in(ours: Iterable[str], forms: Iterable[str]) -> list[str]:
    """Whoever reads our words reads these in them anyhow."""
    said = "\n".join(ours)
    return [form for form in forms if form not in said]


def _longest_first(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _can_be_searched(secret: str) -> bool:
    if len(secret) < SHORTEST or secret.lower() in PLAIN_WORDS:
        return False
    # A file that holds a secret is not one.
    return not (secret.startswith(("/", "~")) and os.path.exists(os.path.expanduser(secret)))  # noqa: PTH110, PTH111
