"""
Puts a report into a pull request (GitHub) or a merge request (GitLab): `comment.py FILE`.

It takes the place of the last one of the same suite, which begins with the same line that nobody
sees. Of the environment it needs, beside what CI sets, PULL_REQUEST and GITHUB_TOKEN, or
GITLAB_TOKEN; and nothing but Python.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

AT_ONCE = 100


class Request:
    """A pull or merge request's comments, in the words of its host."""

    def __init__(self) -> None:
        if api := os.environ.get("GITHUB_API_URL"):
            repository = f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}"
            self.all = f"{repository}/issues/{os.environ['PULL_REQUEST']}/comments"
            self.one, self.change = f"{repository}/issues/comments", "PATCH"
            self.headers = {"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}"}
        else:
            api = os.environ["CI_API_V4_URL"]
            project = f"{api}/projects/{os.environ['CI_PROJECT_ID']}"
            self.all = f"{project}/merge_requests/{os.environ['CI_MERGE_REQUEST_IID']}/notes"
            self.one, self.change = self.all, "PUT"
            self.headers = {"PRIVATE-TOKEN": os.environ["GITLAB_TOKEN"]}
            self.me = self._ask("GET", f"{api}/user")["id"]

    def put(self, text: str) -> None:
        mark = text.splitlines()[0]
        for comment in self._comments():
            if comment["body"].startswith(mark) and self._is_mine(comment):
                self._ask(self.change, f"{self.one}/{comment['id']}", text)
                return
        self._ask("POST", self.all, text)

    def _is_mine(self, comment: dict[str, Any]) -> bool:
        """People may have pasted a report; theirs stays."""
        if "author" in comment:
            return bool(comment["author"]["id"] == self.me)
        return bool(comment["user"]["type"] == "Bot")

    def _comments(self) -> Iterator[dict[str, Any]]:
        page = 1
        while found := self._ask("GET", f"{self.all}?per_page={AT_ONCE}&page={page}"):
            yield from found
            page += 1

    def _ask(self, method: str, url: str, text: str | None = None) -> Any:
        body = None if text is None else json.dumps({"body": text}).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def main() -> None:
    try:
        Request().put(Path(sys.argv[1]).read_text(encoding="utf-8"))
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace")
        sys.exit(f"{error.url}: {error.code} {error.reason}: {said}")
    except KeyError as missing:
        sys.exit(f"{missing.args[0]} is not set: there is no request to comment on")
    except (OSError, IndexError) as error:
        sys.exit(f"the comment can't be made: {error}")


if __name__ == "__main__":
    main()
