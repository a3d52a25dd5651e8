"""
One node of a cluster on the loopback, for as long as this process lives.

`ray start` takes an address of the loopback for a mistake, and listens to all others as well.
"""

import json
import sys
import time

from ray._private.node import Node
from ray._private.parameter import RayParams

READY = "this node is ready"
POLL_S = 0.5


def main() -> None:
    wanted = json.loads(sys.argv[1])
    head = "gcs_address" not in wanted
    # Ray's processes end with this one, however it ends.
    node = Node(RayParams(**wanted), head=head, shutdown_at_exit=True, spawn_reaper=True)
    print(READY, flush=True)  # noqa: T201  # whoever started this waits for it
    while not node.dead_processes():  # type: ignore[no-untyped-call]
        time.sleep(POLL_S)
    node.kill_all_processes(check_alive=False, allow_graceful=False)


if __name__ == "__main__":
    main()
