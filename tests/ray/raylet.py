"""
One node of a cluster on the loopback, for as long as this process lives.

`ray start` takes an address of the loopback for a mistake, and listens to all others as well.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ray._private.node import Node
from ray._private.parameter import RayParams
from ray._private.ray_constants import KV_NAMESPACE_DASHBOARD
from ray._private.utils import write_ray_address
from ray.dashboard.consts import DASHBOARD_AGENT_ADDR_NODE_ID_PREFIX, GCS_RPC_TIMEOUT_SECONDS

READY = "this node is ready"
POLL_S = 0.5

AGENT_S = 60.0
"""For the agent of a head, which jobs go through, from when its raylet is there."""

ITS_LOGS = ("dashboard_agent.*", "dashboard_JobHead.*")
TAIL = 2000


def main() -> None:
    wanted = json.loads(sys.argv[1])
    head = "gcs_address" not in wanted
    # Ray's processes end with this one, however it ends.
    node = Node(RayParams(**wanted), head=head, shutdown_at_exit=True, spawn_reaper=True)
    # Whoever asks on this node for the cluster at hand is not to find another one of the machine.
    write_ray_address(node.gcs_address, wanted["temp_dir"])
    if wanted.get("include_dashboard") and not _takes_jobs(node):
        sys.exit("\n".join(_told_by_logs(node)))
    print(READY, flush=True)  # noqa: T201  # whoever started this waits for it
    while not node.dead_processes():  # type: ignore[no-untyped-call]
        time.sleep(POLL_S)
    node.kill_all_processes(check_alive=False, allow_graceful=False)


def _takes_jobs(node: Node) -> bool:
    """Ray takes a node for started also where its agent can't be reached, and takes no job then."""
    key = f"{DASHBOARD_AGENT_ADDR_NODE_ID_PREFIX}{node.node_id}".encode()
    end = time.monotonic() + AGENT_S
    gcs = node.get_gcs_client()  # type: ignore[no-untyped-call]
    while time.monotonic() < end:
        if gcs.internal_kv_get(key, KV_NAMESPACE_DASHBOARD, timeout=GCS_RPC_TIMEOUT_SECONDS):
            return True
        time.sleep(POLL_S)
    return False


def _told_by_logs(node: Node) -> Iterator[str]:
    yield f"no agent that takes jobs after {AGENT_S:.0f} s"
    folder = Path(node.get_logs_dir_path())  # type: ignore[no-untyped-call]
    for log in sorted(log for pattern in ITS_LOGS for log in folder.glob(pattern)):
        yield f"--- {log.name}\n{log.read_text(errors='replace')[-TAIL:]}"


if __name__ == "__main__":
    main()
