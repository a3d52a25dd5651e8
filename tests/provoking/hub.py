"""A hub that has nothing: it answers with the status that the repository is named after."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CODES = {401: "RepoNotFound", 403: "GatedRepo", 404: "RepoNotFound"}
"""What the real hub says in a header of its own, by status."""

TOO_SLOW = "slow"
NEVER_S = 600


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        named = next(part for part in self.path.split("/") if part.startswith("status-"))
        answer = named.removeprefix("status-")
        if answer == TOO_SLOW:
            time.sleep(NEVER_S)
        status = int(answer)
        self.send_response(status)
        if status in CODES:
            self.send_header("X-Error-Code", CODES[status])
            self.send_header("X-Error-Message", f"Repository refused with {status}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
        pass


@contextmanager
def served() -> Iterator[str]:
    """Its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
