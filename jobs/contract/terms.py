"""
The messages between the orchestrator, a node and a probe: what they have in common.

Plain dataclasses, sent as JSON. Whoever reads one from another process checks
it: the orchestrator with pydantic (`read_attempt`), a probe with `request_from_json`,
which knows just enough of these classes to rebuild them.
"""

import dataclasses
import json
from enum import StrEnum
from typing import Any

CONTRACT_VERSION = 1

STRICT: dict[str, Any] = {"extra": "forbid"}
"""For pydantic, where it is there: a field that nobody declared is a mistake."""


class Check(StrEnum):
    """How far a cell goes."""

    IMPORT = "import"
    """Until vLLM is imported: which files and versions. No engine is made."""

    INIT = "init"
    """Until the engine is ready."""

    GENERATE = "generate"
    """And then a few tokens: an engine can be ready and still die in its first step."""

    SPEED = "speed"
    """And then many, by the clock."""


class EngineMode(StrEnum):
    REAL = "real"
    EMULATED = "emulated"


class Isolation(StrEnum):
    WARM = "warm"
    """The probe is a fork of a host that has imported vLLM and touched no device."""

    COLD = "cold"
    """The probe has an interpreter of its own, started for this one cell."""


class Phase(StrEnum):
    """How far an attempt got, in order. A failure names the phase that it happened in."""

    PROVISION = "provision"
    """The node makes the build ready. No probe is ever in it."""

    PREPARE = "prepare"
    IMPORT = "import"
    CONFIG = "config"
    INIT_DEVICE = "init_device"
    LOAD = "load"
    PROFILE = "profile"
    KV_CACHE = "kv_cache"
    COMPILE = "compile"
    CAPTURE = "capture"
    READY = "ready"
    GENERATE = "generate"
    MEASURE = "measure"
    TEARDOWN = "teardown"


def to_json(message: Any) -> str:
    """One of the classes above as JSON text."""
    return json.dumps(dataclasses.asdict(message), indent=1)
