"""A git repository of a few commits, made for a test."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NOBODY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Repository:
    root: Path

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.root), *words]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(command, env=kept | NOBODY, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def commit(self, subject: str, files: Mapping[str, str | None]) -> str:
        """None: the file goes. Returns the commit's hash."""
        for path, text in files.items():
            file = self.root / path
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")


def made(root: Path) -> Repository:
    root.mkdir(parents=True)
    repository = Repository(root=root)
    repository.git("init", "--quiet", "--initial-branch=main")
    return repository
