"""
The commits of a vLLM checkout, and what its `vllm/` was at each of them.

Nothing in the checkout is touched. Files are read as git keeps them, without filters, since a
checkout's configuration must not start programs.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator.errors import ClusterError, ConfigError

PACKAGE = "vllm"
SHOWN = 10
_FILES = {"100644", "100755"}
"""Modes of plain files; links and submodules lead elsewhere."""

_TRUST = (
    *("-c", "safe.directory=*", "-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false"),
)
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    sha: str
    date: str
    """Of the commit: 2026-11-02."""

    subject: str
    is_merge: bool

    @property
    def short(self) -> str:
        return self.sha[:SHOWN]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    root: Path

    def commit(self, revision: str) -> Commit:
        """Raises ConfigError if there is none, or it has no vLLM."""
        named = None if revision.startswith("-") else self._sha(f"{revision}^{{commit}}")
        if named is None:
            raise ConfigError(f"{self.root} has no revision {revision}")
        if self._sha(f"{named}:{PACKAGE}") is None:
            raise ConfigError(f"revision {revision} of {self.root} has no {PACKAGE}/")
        [found] = self._log("--max-count=1", named)
        return found

    def between(self, old: Commit, new: Commit) -> Sequence[Commit]:
        """
        *old*, and all that change `vllm/` on *new*'s own line, from the oldest on: the last has
        what *new* has. Raises ConfigError if there is no way from *old* to *new*, or no change.
        """
        if not self.is_ancestor(old, new):
            base = self._asked("merge-base", old.sha, new.sha)
            instead = f"; both come from {base[:SHOWN]}" if base else ""
            raise ConfigError(
                f"{old.short} is no ancestor of {new.short}, nor the other way round{instead}"
            )
        found = self._log("--first-parent", "--reverse", f"{old.sha}..{new.sha}", "--", PACKAGE)
        if not found:
            raise ConfigError(f"nothing in {PACKAGE}/ changes from {old.short} to {new.short}")
        return [old, *found]

    def is_ancestor(self, old: Commit, new: Commit) -> bool:
        return self._asked("merge-base", "--is-ancestor", old.sha, new.sha) is not None

    def lay(self, commit: Commit, folder: Path) -> Path:
        """A folder below *folder* that holds its `vllm/`; made once for the same files."""
        tree = self._git("rev-parse", f"{commit.sha}:{PACKAGE}")
        place = folder / tree
        if not place.exists():
            folder.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=f".{tree}-", dir=folder))
            try:
                for path, content in self._files(tree):
                    file = draft / PACKAGE / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                # Whoever was faster has the same files.
                if not place.exists():
                    draft.rename(place)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return place

    def _sha(self, name: str) -> str | None:
        return self._asked("rev-parse", "--verify", "--quiet", name)

    def _log(self, *words: str) -> list[Commit]:
        lines = self._git("log", "--format=%H%x00%cs%x00%P%x00%s", *words).splitlines()
        fields = [line.split("\0", 3) for line in lines if line]
        return [
            Commit(sha=sha, date=date, subject=subject, is_merge=" " in parents)
            for sha, date, parents, subject in fields
        ]

    def _files(self, tree: str) -> Iterator[tuple[PurePosixPath, bytes]]:
        listing = self._git("ls-tree", "-r", "-z", tree)
        entries = [line.partition("\t") for line in listing.split("\0") if line]
        named = [(about.split(), path) for about, _, path in entries]
        blobs = [(sha, path) for (mode, _, sha), path in named if mode in _FILES]
        asked = "".join(f"{sha}\n" for sha, _ in blobs).encode()
        answer = self._run("cat-file", "--batch", text=asked).stdout
        at = 0
        for sha, path in blobs:
            head = answer[at : answer.index(b"\n", at)].split()
            if len(head) != 3 or head[0].decode() != sha:
                raise ClusterError(f"git can't read {PACKAGE}/{path} in {self.root}")
            begin = at + len(b" ".join(head)) + 1
            end = begin + int(head[2])
            at = end + 1
            if ".." not in PurePosixPath(path).parts:
                yield PurePosixPath(path), answer[begin:end]

    def _asked(self, *words: str) -> str | None:
        """None: git says no."""
        answer = self._run(*words, check=False)
        return answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else None

    def _git(self, *words: str) -> str:
        return self._run(*words).stdout.decode(errors="surrogateescape").strip("\n")

    def _run(
        self, *words: str, text: bytes = b"", check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            return subprocess.run(
                ["git", *_TRUST, "-C", str(self.root), *words],
                input=text,
                capture_output=True,
                check=check,
                env=kept | _ENVIRONMENT,
            )
        except FileNotFoundError as error:
            raise ClusterError("git is missing, and commits can't be read without it") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()
            raise ClusterError(f"git {words[0]} failed in {self.root}: {said}") from error


def checkout(path: str) -> Checkout:
    """Raises ConfigError if it is none."""
    root = Path(path).expanduser().absolute()
    found = Checkout(root=root)
    if not root.is_dir() or found._asked("rev-parse", "--git-dir") is None:  # noqa: SLF001
        raise ConfigError(f"--checkout: {path} is no git checkout")
    return found
