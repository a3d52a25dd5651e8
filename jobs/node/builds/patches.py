"""
Puts the patches of a build on, in order, and proves that each is in.

git applies them: it takes a patch whole or not at all and guesses at nothing. Its exit
status is not believed, since it can be 0 with nothing changed; every file that a patch
names must differ afterwards, and the patch must come off again (tried, not done).
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from jobs.contract.builds import BuildSpec, Patch
from jobs.node.builds import diffs
from jobs.node.builds.diffs import Diff, FileDiff, Hunk
from jobs.node.builds.errors import BuildNodeError, BuildSpecError
from jobs.node.builds.linktree import LinkTree

GIT_ENV = {"GIT_DIR": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Outside any repository, or git skips what lies in a part that the repository ignores; and
without a person's settings, which may let it mend white space."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    changed: set[str] = field(default_factory=set)
    skipped: tuple[str, ...] = ()
    """Files outside `vllm/`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """What of a patch goes on."""

    patch: Patch
    strip: int
    files: tuple[FileDiff, ...]

    @property
    def paths(self) -> set[str]:
        return {path for file in self.files for path in file.paths}


def check(spec: BuildSpec) -> None:
    """All that can be wrong with the patches wherever they go; raises BuildSpecError."""
    _parts(spec)


def apply(spec: BuildSpec, tree: LinkTree, version: str) -> Applied:
    """Raises BuildSpecError with all mistakes of all patches; *tree* is then spoilt."""
    mistakes: list[str] = []
    spoilt: set[str] = set()
    parts, skipped = _parts(spec)
    for part in parts:
        if part.paths & spoilt:
            mistakes.append(f"{part.patch.name}: not tried, it changes files of a patch above")
            continue
        wrong = list(_apply(part, tree, version))
        mistakes += [f"{part.patch.name}: {mistake}" for mistake in wrong]
        spoilt |= part.paths if wrong else set()
    if mistakes:
        raise _error(
            [*mistakes, f"make them against vLLM {version}, or take them out of the build"]
        )
    return Applied(changed=set().union(*(part.paths for part in parts)), skipped=skipped)


def _parts(spec: BuildSpec) -> tuple[list[_Part], tuple[str, ...]]:
    parts, skipped, mistakes = [], dict[str, None](), list[str]()
    for patch in spec.patches:
        try:
            diff = diffs.parse(patch.text)
        except diffs.DiffError as error:
            mistakes.append(f"{patch.name}: {error}")
            continue
        mistakes += [f"{patch.name}: {mistake}" for mistake in _misfits(diff)]
        inside = tuple(file for file in diff.files if file.inside and file.alters)
        parts.append(_Part(patch=patch, strip=diff.strip, files=inside))
        skipped |= {path: None for file in diff.files if not file.inside for path in file.paths}
    if mistakes:
        raise _error(mistakes)
    return parts, tuple(skipped)


def _misfits(diff: Diff) -> Iterator[str]:
    native = [path for file in diff.files for path in file.paths if _is_built(path)]
    if native:
        yield (
            f"changes native code ({', '.join(native)}), which only a build of vLLM can take: "
            f"build a wheel with this patch and name it as `wheel`"
        )
    inside = [file for file in diff.files if file.inside]
    if not native and not any(file.alters for file in inside):
        yield "applies to nothing: it changes no file under vllm/"
    for file in inside:
        if file.unfit:
            yield f"{file.paths[-1]}: makes or changes {file.unfit}, which an overlay can't hold"
        if not all(path.startswith(diffs.PACKAGE) for path in file.paths):
            yield f"moves {' to '.join(file.paths)}, into or out of vllm/"


def _is_built(path: str) -> bool:
    # The few such files inside the package are compiled when vLLM runs, from where they lie.
    return diffs.is_native(path) and not path.startswith(diffs.PACKAGE)


def _apply(part: _Part, tree: LinkTree, version: str) -> Iterator[str]:
    """Yields what is wrong with it; then nothing was applied."""
    for path in sorted(part.paths):
        tree.own(path)
    if (refusal := _git(part, tree, "--check")) is not None:
        yield from _explain(part, tree, version, refusal)
        return
    before = {path: tree.sha256(path) for path in part.paths}
    refusal = _git(part, tree)
    unchanged = [path for path in part.paths if tree.sha256(path) == before[path]]
    if refusal or unchanged or _git(part, tree, "--reverse", "--check"):
        raise BuildNodeError(
            f"git took {part.patch.name} and yet it is not in "
            f"(unchanged: {', '.join(sorted(unchanged)) or 'none'}): {refusal or 'it said nothing'}"
        )


def _git(part: _Part, tree: LinkTree, *options: str) -> str | None:
    """What git has against it; None if nothing."""
    text = "".join(file.text for file in part.files)
    command = ["git", "apply", f"-p{part.strip}", "--whitespace=nowarn", *options, "-"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        answer = subprocess.run(
            command,
            input=text.encode(),
            capture_output=True,
            check=False,
            cwd=tree.site,
            env=env | GIT_ENV | {"LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise BuildNodeError("git is missing; builds with patches need it") from error
    said = answer.stderr.decode(errors="replace").strip()
    return None if answer.returncode == 0 else said or f"exit status {answer.returncode}"


def _explain(part: _Part, tree: LinkTree, version: str, refusal: str) -> Iterator[str]:
    if _git(part, tree, "--reverse", "--check") is None:
        yield f"is in already, by vLLM {version} itself or by a patch above"
        return
    found = [mistake for file in part.files for mistake in _misses(file, tree, version)]
    # Where our own reading finds no fault, git's words are all there is.
    yield from found or [refusal]


def _misses(file: FileDiff, tree: LinkTree, version: str) -> Iterator[str]:
    if file.old is None:
        if file.new and tree.sha256(file.new):
            yield f"{file.new}: is to be created, and this vLLM ({version}) has it"
        return
    there = tree.site / file.old
    if not there.is_file():
        yield f"{file.old}: this vLLM ({version}) has no such file"
        return
    lines = there.read_bytes().decode(errors="replace").split("\n")
    for hunk in file.hunks:
        if (miss := _miss(hunk, lines)) is not None:
            yield f"{file.old}: {miss}"


def _miss(hunk: Hunk, lines: list[str]) -> str | None:
    """Where a hunk fits best, and the first line there that is another."""
    size = len(hunk.before)
    places = range(max(1, len(lines) - size + 1))

    def fit(at: int) -> tuple[int, int]:
        same = sum(map(str.__eq__, hunk.before, lines[at : at + size]))
        return same, -abs(at - (hunk.start - 1))

    best = max(places, key=fit)
    there = [*lines[best : best + size], *[""] * size]
    for offset, (expected, found) in enumerate(zip(hunk.before, there, strict=False)):
        if expected != found:
            return (
                f"hunk {hunk.number} (line {hunk.start}) does not fit, line {best + offset + 1}\n"
                f"      expected: {expected}\n"
                f"      found:    {found}"
            )
    return None


def _error(mistakes: list[str]) -> BuildSpecError:
    listed = "\n  ".join(mistakes)
    return BuildSpecError(f"the patches of the build can't be applied:\n  {listed}")
