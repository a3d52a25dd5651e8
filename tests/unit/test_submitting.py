"""What goes to a cluster, and what is said before anything does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from orchestrator.asked.compose import compose
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.remote import jobs_api, leaks, working_dir
from orchestrator.remote.jobs_api import JobsApi, UnreachableError
from orchestrator.remote.submitting import submitted

NOBODY = "http://127.0.0.1:9"


def submit(*words: str) -> None:
    submitted(words, compose(words)[0], NOBODY, lambda _: None)


@pytest.mark.parametrize("name", ["HF_TOKEN", "MY_PASSWORD"])
def test_a_variable_with_the_name_of_a_secret_is_not_submitted(name: str) -> None:
    with pytest.raises(ConfigError, match=f"cluster.runtime_env.env_vars.{name} is a secret"):
        submit(f"cluster.runtime_env.env_vars.{name}=short")


def test_other_variables_are_submitted() -> None:
    with pytest.raises(UnreachableError, match="nothing answers"):
        submit("cluster.runtime_env.env_vars.HF_HOME=/models")


def test_a_checkout_that_lies_here_is_not_looked_for_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="put it on a disk that the cluster sees"):
        submit("build=[v0_32_gpu]", f"build.v0_32_gpu.checkout={tmp_path}")


def test_a_file_of_waivers_that_would_stay_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.yaml").write_text("waivers: []")

    with pytest.raises(ConfigError, match=r"gate\.waiver_files: ours\.yaml lies beside"):
        submit("gate.waiver_files=[waivers/demo.yaml,ours.yaml]")


@pytest.mark.parametrize(
    "line",
    ["    HF_TOKEN: hf_abcdefghijklmnopqrstu", "    SITE_PASSWORD: kFjw83hs", "# sk-" + "a" * 24],
)
def test_a_secret_in_a_file_is_not_submitted(line: str, tmp_path: Path) -> None:
    file = tmp_path / "model" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(f"# @package model.mine\npath: /models/mine\nenv:\n    A: b\n{line}\n")

    with pytest.raises(ConfigError, match=f"{file}, line 5 holds a secret"):
        submit(f"--config-dir={tmp_path}")


@pytest.mark.parametrize(
    "line", ["    HF_TOKEN: ${oc.env:HF_TOKEN}", "    TOKEN: null", "# our token"]
)
def test_where_a_secret_lies_may_be_said(line: str, tmp_path: Path) -> None:
    file = tmp_path / "model" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(f"# @package model.mine\npath: /models/mine\nenv:\n{line}\n")

    assert not [*leaks.places(tmp_path)]


def test_code_and_configuration_go_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("")
    (tmp_path / ".git").mkdir()

    with working_dir.assembled(str(tmp_path)) as folder:
        gone = {path.name for path in folder.iterdir()}
        more = [path.name for path in (folder / working_dir.MORE).iterdir()]
        compiled = [*folder.rglob("__pycache__")]

    assert gone == {"jobs", "orchestrator", "hydra_plugins", "conf", working_dir.MORE}
    assert more == ["model"]
    assert not compiled
    assert not folder.exists()


def test_what_is_too_much_is_named(tmp_path: Path) -> None:
    with (tmp_path / "weights.bin").open("wb") as large:
        large.truncate((working_dir.LARGEST_MIB + 1) << 20)

    with (
        pytest.raises(ConfigError, match=r"conf_more/weights.bin: 21.0 MiB"),
        working_dir.assembled(str(tmp_path)),
    ):
        pass


@pytest.mark.parametrize(("status", "text"), [(404, ""), (200, "<html>"), (200, "{}")])
def test_another_server_is_taken_for_no_dashboard(status: int, text: str) -> None:
    with _server(status, text) as url, pytest.raises(ClusterError, match="is no dashboard of Ray"):
        JobsApi(url)


def test_a_cluster_that_takes_no_job_for_a_minute_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_api, "STARTING_S", 0)
    version = '{"version": "4", "ray_version": "2.60.0", "ray_commit": "", "session_name": ""}'
    agentless = "No available agent to submit job, please try again later."
    with _server(200, version, refusal=agentless) as url:
        api = JobsApi(url)
        with pytest.raises(ClusterError, match=r"Look at dashboard_agent.log .* its port is taken"):
            api.submit("echo", tmp_path, {})


def test_a_server_of_this_machine_is_asked_past_the_proxies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("http_proxy", NOBODY)
    version = '{"version": "4", "ray_version": "2.60.0", "ray_commit": "", "session_name": ""}'

    with _server(200, version) as url:
        JobsApi(url)


@contextmanager
def _server(status: int, text: str, *, refusal: str = "") -> Iterator[str]:
    """With a *refusal*, that is what it says to whoever wants more than to look."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(status, text)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(500, refusal)

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
