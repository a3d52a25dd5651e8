"""Parts of a cell on several nodes: they begin together, and end together."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.contract.asked import CellRequest, Part
from jobs.node import interfaces, probing, tether
from jobs.node.errors import NodeError, PartedError
from jobs.node.ports import MEETING
from jobs.node.run_cell import run_cell
from jobs.node.tether import Following, Leading, Tether
from tests.unit.standin import PLACEMENT, a_request, eventually, lies_in, runs

pytestmark = pytest.mark.usefixtures("no_host_stays")

HERE = "127.0.0.1"
SECRET = "s" * 32
STAYS = "(folder / 'pid').write_text(str(os.getpid())); time.sleep(600)"


def a_part(number: int, *, of: int = 2, port: int = 0) -> Part:
    return Part(
        number=number,
        of=of,
        node=f"n{number}",
        address=HERE,
        leader=HERE,
        port=port,
        secret=SECRET,
    )


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tether, "GRACE_S", 0.5)


@pytest.fixture
def leading() -> Iterator[Leading]:
    with closing(Leading(a_part(0, of=3))) as leading:
        yield leading


@pytest.fixture
def together() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def joined(leading: Leading, number: int) -> Following:
    following = Following(a_part(number, of=3, port=leading.port))
    following.join()
    return following


def test_all_begin_when_the_last_is_ready_and_meet_where_the_first_says(
    leading: Leading, together: ThreadPoolExecutor
) -> None:
    one, two = joined(leading, 1), joined(leading, 2)
    met = [together.submit(one.meet, 7, 20.0), together.submit(leading.meet, 20_063, 20.0)]
    assert not eventually(lambda: any(future.done() for future in met), within_s=0.3)

    assert two.meet(9, 20.0) == 20_063
    assert {future.result() for future in met} == {20_063}
    assert [each.grace_s() for each in (leading, one, two)] == [None] * 3
    for each in (one, two):
        each.close()


def test_a_stranger_is_no_part(leading: Leading, together: ThreadPoolExecutor) -> None:
    place = HERE, leading.port
    strangers = [socket.create_connection(place) for _ in range(3)]
    strangers[0].sendall(b"x" * 33)
    strangers[1].close()
    one, two = joined(leading, 1), joined(leading, 2)
    met = [together.submit(each.meet, 0, 20.0) for each in (one, two)]

    assert leading.meet(20_127, 20.0) == 20_127
    assert [future.result() for future in met] == [20_127] * 2
    one.close()
    two.close()
    for stranger in strangers:
        stranger.close()


def test_a_part_that_ends_while_others_get_ready_ends_them(
    leading: Leading, together: ThreadPoolExecutor
) -> None:
    one, two = joined(leading, 1), joined(leading, 2)
    met = [together.submit(each.meet, 0, 20.0) for each in (leading, one)]

    two.close()

    with pytest.raises(PartedError):
        met[0].result()
    leading.close()
    with pytest.raises(PartedError):
        met[1].result()
    one.close()


def test_a_part_whose_leader_is_gone_has_nothing_to_do(leading: Leading) -> None:
    leading.close()

    with pytest.raises(PartedError):
        joined(leading, 1)


def test_a_part_that_never_comes_is_the_fault_of_the_nodes(leading: Leading) -> None:
    with pytest.raises(NodeError, match="not ready in time"):
        leading.meet(20_063, 0.1)


def test_a_leader_that_can_not_be_reached_is_named(
    leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", unreachable)

    with pytest.raises(NodeError, match=rf"n1 can't reach {HERE}, port {leading.port}: timed out"):
        joined(leading, 1)


def test_what_a_node_is_reached_by_is_its_interface() -> None:
    assert interfaces.holding(HERE) == "lo"
    assert interfaces.holding("192.0.2.77") is None


@pytest.fixture
def both(tmp_path: Path, together: ThreadPoolExecutor) -> Iterator["Both"]:
    both = Both(tmp_path, together)
    yield both
    both.leading.close()


class Both:
    """Two parts of a cell, each with a real process, as two nodes have them."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self.leading = Leading(a_part(0))
        self._folder, self._pool = folder, pool

    def run(self, first: str, second: str, **more: Any) -> tuple[Future[Any], Future[Any]]:
        self.requests = (
            self._request(0, first, **more),
            self._request(1, second, **more),
        )
        following = Following(a_part(1, port=self.leading.port))
        return (
            self._pool.submit(attempt, self.requests[0], self.leading),
            self._pool.submit(attempt, self.requests[1], following),
        )

    def process(self, number: int) -> int:
        return int(lies_in(self.requests[number], "pid").read_text())

    def _request(self, number: int, code: str, **more: Any) -> CellRequest:
        request = a_request(self._folder, code, number=number, **more)
        probe = replace(request.probe, cell_id="cell")
        return replace(request, probe=probe, part=a_part(number))


def attempt(request: CellRequest, tie: Tether) -> dict[str, Any]:
    with closing(tie):
        seen: dict[str, Any] = json.loads(run_cell(request, PLACEMENT, tie))
    return seen


def test_every_part_knows_its_seat_and_where_others_find_its_ranks(both: Both) -> None:
    says = """
        found = {name: os.environ[name] for name in ("VLLM_HOST_IP", "GLOO_SOCKET_IFNAME")}
        report(ready=True, seat=seat, port=os.environ["VLLM_PORT"], found=found)
        while seat["number"] or not (folder.parent / "1" / "report.json").exists():
            time.sleep(0.02)
    """

    first, second = (part.result()["report"] for part in both.run(says, says))
    assert first["found"] == {"VLLM_HOST_IP": HERE, "GLOO_SOCKET_IFNAME": "lo"}
    meets = {"leader": HERE, "port": int(first["port"]) + MEETING}
    assert first["seat"] == {"number": 0, "node": "n0"} | meets
    assert second["seat"] == {"number": 1, "node": "n1"} | meets


def test_a_part_that_follows_is_ended_at_once_when_the_cell_is_done(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tether, "GRACE_S", 600.0)
    first, second = both.run("time.sleep(0.5); report(ready=True)", STAYS)

    assert first.result()["exit"]["code"] == 0
    seen = second.result()
    assert seen["exit"]["parted"]
    assert seen["processes_killed"] == 0
    assert not runs(both.process(1))


@pytest.mark.parametrize("number", [0, 1])
def test_a_part_that_is_killed_takes_the_others_along(both: Both, number: int) -> None:
    parts = both.run(STAYS, STAYS)
    pids = [both.process(0), both.process(1)]

    os.kill(pids[number], signal.SIGKILL)

    ends = [part.result()["exit"] for part in parts]
    assert ends[number]["signal"] == signal.SIGKILL
    assert ends[1 - number]["parted"]
    assert not any(map(runs, pids))


def test_a_part_that_lost_another_may_still_say_why(both: Both) -> None:
    both_say = "time.sleep({}); report(failure={{'phase': 'load', 'of': '{}'}})"
    first, second = both.run(both_say.format(0.3, "first"), both_say.format(0.5, "second"))

    assert first.result()["report"]["failure"]["of"] == "first"
    seen = second.result()
    assert not seen["exit"]["parted"]
    assert seen["report"]["failure"]["of"] == "second"


def test_a_host_that_does_not_start_ends_the_other_part_before_it_begins(both: Both) -> None:
    first, second = both.run(STAYS, STAYS, env={"STANDIN_PRELOAD": "sys.exit(3)"})

    assert first.result()["exit"]["code"] == 3
    assert second.result()["exit"]["code"] == 3 or second.result()["exit"]["parted"]


def test_a_part_that_is_out_of_time_is_ended_with_the_other(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "OUT_OF_TIME", probing.PARTED)
    parts = both.run(STAYS, STAYS, deadline_s=1.0)

    assert any(part.result()["exit"]["timed_out"] for part in parts)
