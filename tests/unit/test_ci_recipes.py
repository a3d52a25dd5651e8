"""What deploy/ci says to CI systems is what they take, and its steps do what they should."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import xmlschema
import yaml

from orchestrator.asked.compose import compose
from orchestrator.reports import write_all
from orchestrator.run import validate
from tests.builders import a_failed_report, an_attempt
from tests.fakes import FakeCluster, SilentProgress

ROOT = Path(__file__).parents[2]
CI = ROOT / "deploy" / "ci"
JUNIT = xmlschema.XMLSchema(Path(__file__).parent / "data" / "junit.xsd")

SCHEMAS = {
    "github/vllm-matrix.yml": "github-workflows",
    "github/vllm-matrix-nightly.yml": "github-workflows",
    "buildkite/pipeline.yml": "buildkite",
    "gitlab/vllm-matrix.gitlab-ci.yml": "gitlab-ci",
}

WRITTEN = "suite=pr54826"
WORDS = ["hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]"]
CELL = "cpu/llama/auto/v0_32"


def read(recipe: str) -> Any:
    # To YAML 1.1, `on` is true.
    return yaml.safe_load((CI / recipe).read_text().replace("\non:", '\n"on":'))


@pytest.mark.parametrize(("recipe", "schema"), SCHEMAS.items())
def test_a_recipe_is_what_its_ci_system_takes(recipe: str, schema: str) -> None:
    checked = subprocess.run(
        [f"{sys.prefix}/bin/check-jsonschema", "--builtin-schema", f"vendor.{schema}", CI / recipe],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (checked.returncode, checked.stdout.strip()) == (0, "ok -- validation done")


def test_every_recipe_is_checked() -> None:
    assert {str(file.relative_to(CI)) for file in CI.rglob("*.yml")} == {*SCHEMAS}


def test_a_job_may_write_only_where_it_comments() -> None:
    jobs = {
        (recipe, name): job
        for recipe in SCHEMAS
        if recipe.startswith("github/")
        for name, job in read(recipe)["jobs"].items()
    }

    writing = [name for name, job in jobs.items() if "write" in job["permissions"].values()]
    assert writing == [("github/vllm-matrix.yml", "comment")]
    assert all(read(recipe)["permissions"] == {} for recipe, _ in jobs)


@pytest.mark.parametrize("recipe", SCHEMAS)
def test_what_a_recipe_runs_makes_sense(recipe: str) -> None:
    [line] = [line for line in script(recipe).splitlines() if " || code=$?" in line]
    _, words = line.strip().removesuffix(" || code=$?").split("vllm-matrix ", 1)
    command, *overrides = words.split()

    assert command in {"run", "submit"}
    compose(overrides)


def script(recipe: str) -> str:
    """What the main job of a recipe says to a shell, as the shell gets it."""
    described = read(recipe)
    match recipe.split("/", maxsplit=1)[0]:
        case "github":
            [steps] = [job["steps"] for name, job in described["jobs"].items() if name != "comment"]
            return "\n".join(step["run"] for step in steps if "run" in step)
        case "gitlab":
            return "\n".join(described["vllm-matrix"]["script"])
        case _:
            command: str = described["steps"][0]["command"]
            return command.replace("$$", "$")


SHELLS = {
    "github": ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
    "gitlab": ["bash", "-eo", "pipefail"],
    "buildkite": ["bash", "-e"],
}
ON_GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "summary.md"}
AGENT = """\
#!/bin/sh
echo "$@" >agent.words
cat >comment.md
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a CI system lays it, but for a set-up that is there already, and Buildkite's own agent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name, text in {"scripts/setup": "#!/bin/sh\n", "bin/buildkite-agent": AGENT}.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return tmp_path


def ran(workspace: Path, recipe: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Its steps, with *words* for what it says."""
    text = script(recipe)
    assert text.count(WRITTEN) == 1
    (workspace / "script").write_text(text.replace(WRITTEN, " ".join(f"'{w}'" for w in words)))
    return subprocess.run(
        [*SHELLS[recipe.split("/", maxsplit=1)[0]], "script"],
        cwd=workspace,
        env={
            **os.environ,
            "PATH": f"{workspace}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "VLLM_MATRIX_CACHE": str(workspace / "cache"),
            **(ON_GITHUB if recipe.startswith("github/") else {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def a_kept_run(*, ships: bool) -> None:
    """Whose verdicts the same words keep, so that no engine has to start."""
    cluster = FakeCluster()
    if not ships:
        cluster.script[CELL] = [an_attempt(a_failed_report("broken"))]
    write_all(validate(compose(WORDS), WORDS, cluster, SilentProgress()))


@pytest.mark.parametrize(
    ("recipe", "ships"),
    [
        ("github/vllm-matrix.yml", False),
        ("buildkite/pipeline.yml", False),
        ("gitlab/vllm-matrix.gitlab-ci.yml", True),
    ],
)
def test_the_steps_leave_a_comment_and_a_test_report_and_end_as_the_gate_says(
    recipe: str, ships: bool, workspace: Path
) -> None:
    a_kept_run(ships=ships)
    for day in range(1, 26):
        Path(f"runs/2026-01-{day:02}-cells").mkdir()
    ended = ran(workspace, recipe, WORDS)
    answer = "ships: 1 of 1 cells passed" if ships else "blocked: 1 failed"

    assert ended.returncode == (0 if ships else 1), ended.stderr
    assert "every verdict is kept" in ended.stdout
    mark, first, *_ = (workspace / "comment.md").read_text().splitlines()
    assert (mark, first.startswith(f"**{answer}")) == ("<!-- vllm-matrix cells -->", True)
    JUNIT.validate(workspace / "junit.xml")
    kept = 26 if recipe.startswith("buildkite") else 20
    assert len([*Path("runs").iterdir()]) == kept
    if recipe.startswith("github"):
        assert f"::error title=vllm-matrix cells::{answer}" in ended.stderr
        assert (workspace / "summary.md").read_text().startswith(first)
    if recipe.startswith("buildkite"):
        style = "success" if ships else "error"
        assert (workspace / "agent.words").read_text() == (
            f"annotate --context vllm-matrix --style {style}\n"
        )


@pytest.mark.parametrize(
    "recipe",
    ["github/vllm-matrix.yml", "buildkite/pipeline.yml", "gitlab/vllm-matrix.gitlab-ci.yml"],
)
def test_without_an_answer_no_older_run_is_taken_for_one(recipe: str, workspace: Path) -> None:
    a_kept_run(ships=True)
    ended = ran(workspace, recipe, ["suite=misspelt"])

    assert ended.returncode == 2
    assert not (workspace / "comment.md").exists()


@dataclass
class Host:
    """GitHub's or GitLab's comments on a request, over HTTP."""

    comments: list[dict[str, Any]]
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, url: str, said: dict[str, Any]) -> Any:
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        self.asked.append((method, path))
        match method, path.rsplit("/", 1)[-1]:
            case "GET", "user":
                return {"id": 7}
            case "GET", _:
                first = (int(query["page"][0]) - 1) * int(query["per_page"][0])
                return self.comments[first : first + int(query["per_page"][0])]
            case "POST", _:
                self.comments.append({"id": 1000, **said})
            case _, number:
                [comment] = [each for each in self.comments if each["id"] == int(number)]
                comment |= said
        return {}


@pytest.fixture
def host() -> Iterator[Host]:
    known = Host(comments=[])

    class Handler(BaseHTTPRequestHandler):
        def answered(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            said = json.loads(self.rfile.read(length)) if length else {}
            body = json.dumps(known.answer(self.command, self.path, said)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = answered  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    known.url = f"http://127.0.0.1:{server.server_port}"
    yield known
    server.shutdown()
    server.server_close()


MARK = "<!-- vllm-matrix demo -->"
BOT, PERSON = {"type": "Bot"}, {"type": "User"}
OF_HOST = {
    "github": {
        "GITHUB_API_URL": "URL",
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_TOKEN": "t",
        "PULL_REQUEST": "3",
    },
    "gitlab": {
        "CI_API_V4_URL": "URL",
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "3",
        "GITLAB_TOKEN": "t",
    },
}


def commented(name: str, host: Host, folder: Path, text: str) -> None:
    (folder / "comment.md").write_text(text)
    environment = {key: value.replace("URL", host.url) for key, value in OF_HOST[name].items()}
    done = subprocess.run(
        [sys.executable, CI / "comment.py", "comment.md"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def by(name: str, *, bot: bool) -> dict[str, Any]:
    if name == "github":
        return {"user": BOT if bot else PERSON}
    return {"author": {"id": 7 if bot else 8}}


@pytest.mark.parametrize("name", OF_HOST)
def test_the_first_report_is_a_new_comment(name: str, host: Host, tmp_path: Path) -> None:
    host.comments = [
        {"id": 1, "body": "<!-- vllm-matrix other -->\nno", **by(name, bot=True)},
        {"id": 2, "body": f"{MARK}\npasted", **by(name, bot=False)},
    ]
    commented(name, host, tmp_path, f"{MARK}\nblocked")

    assert [each["body"] for each in host.comments] == [
        "<!-- vllm-matrix other -->\nno",
        f"{MARK}\npasted",
        f"{MARK}\nblocked",
    ]


@pytest.mark.parametrize("name", OF_HOST)
def test_the_next_report_takes_its_place(name: str, host: Host, tmp_path: Path) -> None:
    others = [{"id": n, "body": "hm", **by(name, bot=False)} for n in range(150)]
    host.comments = [*others, {"id": 500, "body": f"{MARK}\nblocked", **by(name, bot=True)}]
    commented(name, host, tmp_path, f"{MARK}\nships")

    assert [each["body"] for each in host.comments] == ["hm"] * 150 + [f"{MARK}\nships"]
    places = {
        "github": ("PATCH", "/repos/me/mine/issues/comments/500"),
        "gitlab": ("PUT", "/projects/5/merge_requests/3/notes/500"),
    }
    assert host.asked[-1] == places[name]


def test_without_a_request_it_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, CI / "comment.py", ROOT / "README.md"],
        env={"CI_API_V4_URL": "http://127.0.0.1:9", "CI_PROJECT_ID": "5"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("CI_MERGE_REQUEST_IID is not set: ")
