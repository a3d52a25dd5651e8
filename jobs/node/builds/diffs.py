"""
What a unified diff changes: from git or from `diff -u`, with path prefixes or without.

Read strictly, because a line that was passed over is a change that is not made: a hunk
must have exactly the lines that its header counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

PACKAGE = "vllm/"
NOWHERE = "/dev/null"
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
GIT_HEADER = re.compile(r"diff --git (\S+) (\S+)$")
LINK_OR_SUBMODULE = re.compile(r"(?:new|deleted file|new file|old) mode 1[26]0000")

NATIVE_FOLDERS = ("csrc/", "cmake/", "rust/")
NATIVE_FILES = {"CMakeLists.txt", "setup.py"}
NATIVE_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hip", ".hpp", ".inl", ".rs")
BESIDE_THE_CODE = ("tests/", "docs/", "benchmarks/", "examples/", "tools/")


class DiffError(ValueError):
    """The text is no diff that can be trusted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hunk:
    number: int
    """Within its file, from 1."""

    start: int
    """The first line it replaces, as the diff counts them."""

    before: tuple[str, ...]
    """The lines that it expects to find."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDiff:
    old: str | None
    """Path without prefix; None: the file is created."""

    new: str | None
    """None: the file is deleted."""

    hunks: tuple[Hunk, ...]
    text: str
    unfit: str | None
    """What it makes of the file, if that is nothing that an overlay can hold."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for path in (self.old, self.new) if path))

    @property
    def inside(self) -> bool:
        return any(path.startswith(PACKAGE) for path in self.paths)

    @property
    def alters(self) -> bool:
        """A changed mode alone alters nothing that Python would see."""
        return bool(self.hunks or self.unfit) or self.old != self.new


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    strip: int
    """Leading folders to take off its paths, as `-p` of git and patch."""

    files: tuple[FileDiff, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Section:
    """The lines about one file."""

    header: list[str] = field(default_factory=list)
    hunks: list[list[str]] = field(default_factory=list)


def parse(text: str) -> Diff:
    """Raises DiffError for what is damaged, and for paths that lead out of a checkout."""
    sections = list(_sections(_lines(text)))
    named = [(section, *_written_paths(section.header)) for section in sections]
    strip = _strip([path for _, *paths in named for path in paths])
    return Diff(strip=strip, files=tuple(_file(*each, strip=strip) for each in named))


def is_native(path: str) -> bool:
    """Is compiled into vLLM's libraries, or decides how they are."""
    if path.startswith(NATIVE_FOLDERS) or path in NATIVE_FILES:
        return True
    return path.endswith(NATIVE_SUFFIXES) and not path.startswith(BESIDE_THE_CODE)


def _lines(text: str) -> list[str]:
    # Not splitlines: a form feed is no end of line to git.
    lines = text.split("\n")
    # A diff of a file with CRLF has it in the content only. In the headers, an editor put it.
    if any(line.startswith("@@ ") and line.endswith("\r") for line in lines):
        return [line.removesuffix("\r") for line in lines]
    return lines


def _sections(lines: list[str]) -> Iterator[_Section]:
    """Mail headers, commit messages and signatures are left out."""
    section: _Section | None = None
    at = 0
    while at < len(lines):
        if _begins(lines, at, section):
            if section is not None:
                yield section
            section = _Section()
        if lines[at].startswith("@@") and section is not None:
            end = _hunk_end(lines, at)
            section.hunks.append(lines[at:end])
            at = end
            continue
        if section is not None and not section.hunks:
            section.header.append(lines[at])
        at += 1
    if section is not None:
        yield section


def _begins(lines: list[str], at: int, section: _Section | None) -> bool:
    if lines[at].startswith(("diff --cc ", "diff --combined ")):
        raise DiffError("is the diff of a merge: make one against a single parent")
    if lines[at].startswith("diff --git "):
        return True
    names_follow = "".join(lines[at + 1 : at + 2]).startswith("+++ ")
    # Below `diff --git`, the two names belong to the section that it began.
    header = [] if section is None or section.hunks else section.header
    return (
        lines[at].startswith("--- ")
        and names_follow
        and not "".join(header[:1]).startswith("diff ")
    )


def _hunk_end(lines: list[str], at: int) -> int:
    """The index after a hunk's last line."""
    counts = HUNK.match(lines[at])
    if counts is None:
        raise DiffError(f"line {at + 1}: the header of a hunk can't be read")
    old, new = int(counts[2] or 1), int(counts[4] or 1)
    end = at + 1
    while (old > 0 or new > 0) and end < len(lines):
        kind = lines[end][:1]
        # An editor that trims lines leaves an empty line of context without its space.
        old -= kind in {"", " ", "-"}
        new -= kind in {"", " ", "+"}
        if kind not in {"", " ", "-", "+", "\\"}:
            break
        end += 1
    if lines[end : end + 1] and lines[end].startswith("\\"):
        end += 1
    if (old, new) != (0, 0) or _goes_on(lines, end):
        raise DiffError(f"line {at + 1}: the hunk has other lines than its header counts")
    return end


def _goes_on(lines: list[str], end: int) -> bool:
    after = "".join(lines[end : end + 1])
    # The mark of a mail's signature, and the name that begins the next file.
    return after.startswith((" ", "+", "-")) and not after.startswith(("-- ", "--- "))


def _written_paths(header: list[str]) -> tuple[str, str]:
    """With their prefixes."""
    if any(line.startswith("copy from ") for line in header):
        raise DiffError(f"copies a file, make it without `-C`: {header[0]}")
    old = next((line[4:] for line in header if line.startswith("--- ")), None)
    new = next((line[4:] for line in header if line.startswith("+++ ")), None)
    if old is not None and new is not None:
        return _without_time(old), _without_time(new)
    # Renamed as it is, created empty, deleted empty, binary: only the first line has the names.
    names = GIT_HEADER.match(header[0])
    if names is None:
        raise DiffError(f"has file names that can't be read: {header[0]}")
    created = any(line.startswith("new file mode") for line in header)
    deleted = any(line.startswith("deleted file mode") for line in header)
    return NOWHERE if created else names[1], NOWHERE if deleted else names[2]


def _without_time(written: str) -> str:
    return written.split("\t", maxsplit=1)[0].rstrip()


def _strip(paths: list[str]) -> int:
    bare = any(path.startswith(PACKAGE) for path in paths)
    prefixed = next((path for path in paths if re.match(r"[a-z]/vllm/", path)), None)
    if bare and prefixed:
        raise DiffError(f"has paths with and without a prefix, such as {prefixed}")
    return 0 if bare else 1


def _file(section: _Section, written_old: str, written_new: str, *, strip: int) -> FileDiff:
    old, new = _bare(written_old, strip), _bare(written_new, strip)
    header = section.header
    if old and new and old != new and not header[0].startswith("diff --git"):
        # Outside git, two names are those of a copy and its original; nothing is renamed.
        old, header = new, [f"--- {written_new}", f"+++ {written_new}"]
    return FileDiff(
        old=old,
        new=new,
        hunks=tuple(_hunk(number, lines) for number, lines in enumerate(section.hunks, 1)),
        text="".join(f"{line}\n" for line in chain(header, *section.hunks)),
        unfit=_unfit(section.header),
    )


def _bare(written: str, strip: int) -> str | None:
    if written == NOWHERE:
        return None
    if written.startswith(('"', "/")) or not {"", ".", ".."}.isdisjoint(written.split("/")):
        raise DiffError(f"has a path that leads elsewhere, or can't be read: {written}")
    return written.split("/", 1)[-1] if strip else written


def _hunk(number: int, lines: list[str]) -> Hunk:
    counts = HUNK.match(lines[0])
    assert counts is not None
    before = tuple(line[1:] for line in lines[1:] if line[:1] in {"", " ", "-"})
    return Hunk(number=number, start=int(counts[1]), before=before)


def _unfit(header: list[str]) -> str | None:
    if any(line.startswith(("GIT binary patch", "Binary files ")) for line in header):
        return "a binary file"
    if any(LINK_OR_SUBMODULE.match(line) for line in header):
        return "a symbolic link or a submodule"
    return None
