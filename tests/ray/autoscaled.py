"""
A cluster whose own autoscaler, Ray's second one, starts nodes: raylets on this machine.

Ray asks a provider for machines; ours takes the part of Ray that pretends several on one, and
keeps it on the loopback. `Provider` lives in the process of Ray's that runs the autoscaler.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray._private import services
from ray.autoscaler._private.fake_multi_node.node_provider import (
    FAKE_HEAD_NODE_ID,
    FAKE_HEAD_NODE_TYPE,
    FakeMultiNodeProvider,
)

from tests.ray.mixed_cluster import HOST, MixedCluster
from tests.ray.node_kinds import NodeKind

_CLOUD = {
    "RAY_FAKE_CLUSTER": "1",
    "RAY_enable_autoscaler_v2": "1",
    "RAY_CLOUD_INSTANCE_ID": FAKE_HEAD_NODE_ID,
    "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID,
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
}


class Provider(FakeMultiNodeProvider):
    def __init__(self, *arguments: Any) -> None:
        services.get_node_ip_address = lambda *_: HOST
        super().__init__(*arguments)


class Autoscaled(MixedCluster):
    """A head that takes no cells, and groups of nodes of which none is there yet."""

    def __init__(self, groups: Mapping[str, NodeKind], *, folder: Path) -> None:
        super().__init__([NodeKind(name="head", environment=_CLOUD, labels={"vm.cpu": "no"})])
        self._file = folder / "autoscaling.json"
        self._file.write_text(json.dumps(_config(groups, self.address)))

    def _parameters(self, kind: NodeKind) -> dict[str, Any]:
        return {**super()._parameters(kind), "autoscaling_config": str(self._file)}


def _config(groups: Mapping[str, NodeKind], gcs_address: str) -> dict[str, Any]:
    head = {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0}
    kinds = {
        name: {
            "resources": {"CPU": kind.cpus, "GPU": kind.gpus, "object_store_memory": 80 << 20},
            "labels": dict(kind.labels),
            "node_config": {},
            "min_workers": 0,
            "max_workers": 1,
        }
        for name, kind in groups.items()
    }
    return {
        "cluster_name": "autoscaled",
        "max_workers": len(groups),
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 60,
        "provider": {
            "type": "external",
            "module": f"{__name__}.Provider",
            "gcs_address": gcs_address,
            "head_node_id": FAKE_HEAD_NODE_ID,
            "launch_multiple": True,
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "auth": {},
        "available_node_types": {FAKE_HEAD_NODE_TYPE: head, **kinds},
        "head_node_type": FAKE_HEAD_NODE_TYPE,
        "head_setup_commands": [],
        "worker_setup_commands": [],
        "setup_commands": [],
        "initialization_commands": [],
        "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
        "file_mounts": {},
        "cluster_synced_files": [],
        "file_mounts_sync_continuously": False,
        "rsync_exclude": [],
        "rsync_filter": [],
    }
