"""The way to a cluster, and what is said where there is none."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from orchestrator.__main__ import answer
from orchestrator.running.on_ray.door import asked_without_token, narrowed


class Dashboard(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def dashboard() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Dashboard) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "door"), [(200, "off"), (401, "on"), (403, "on"), (500, "unknown")]
)
def test_a_dashboard_tells_whether_it_answers_anyone(
    status: int, door: str, dashboard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dashboard, "status", status)

    assert asked_without_token(dashboard) == door


def test_a_proxy_is_not_asked_for_a_dashboard_of_this_machine(
    dashboard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    assert asked_without_token(dashboard) == "off"


LISTEN = (
    "import socket, sys; s = socket.create_server((sys.argv[1], 0)); print(s.getsockname()[1]); "
)
LISTEN += "sys.stdout.flush(); sys.stdin.read()"


@pytest.mark.parametrize(
    ("host", "program", "door"),
    [
        ("127.0.0.1", "/ray/core/gcs_server", "loopback"),
        ("0.0.0.0", "/ray/core/gcs_server", "off"),
        ("127.0.0.1", "ssh", "off"),
    ],
    ids=["this machine alone", "everybody", "a tunnel"],
)
def test_an_open_door_is_none_where_ray_listens_to_this_machine_alone(
    host: str, program: str, door: str
) -> None:
    command = [sys.executable, "-c", LISTEN, host, program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())

        assert narrowed("off", [port]) == door
        assert narrowed("on", [port]) == "on"
        server.kill()


def test_what_is_not_seen_here_may_be_open_to_anyone() -> None:
    assert narrowed("off", []) == "off"


def test_a_dashboard_that_is_not_there_tells_nothing() -> None:
    assert asked_without_token("http://127.0.0.1:1") == "unknown"


@pytest.mark.parametrize(
    "address",
    ["foo bar", "10.0.0.1", "http://10.0.0.1:8265", "ray://10.0.0.1:10001", "a:70000", ":1"],
)
def test_what_can_be_no_address_is_a_mistake(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(["nodes", "--address", address]) == 2

    assert f'"{address}" can be no address of a Ray cluster' in capsys.readouterr().err


def test_an_address_at_which_nothing_answers_is_the_infrastructure_s(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert answer(["nodes", "--address", "127.0.0.1:1"]) == 4

    assert "nothing answers at 127.0.0.1:1" in capsys.readouterr().err
