import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from orchestrator.__main__ import answer
from orchestrator.running.on_ray.connection import asked_without_token


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


def test_a_dashboard_that_is_not_there_tells_nothing() -> None:
    assert asked_without_token("http://127.0.0.1:1") == "unknown"


@pytest.mark.parametrize(
    "address", ["foo bar", "10.0.0.1", "http://10.0.0.1:8265", "a:70000", ":1"]
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
