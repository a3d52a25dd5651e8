"""Mistakes in conf/ that no single key shows."""

import contextlib
import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from jobs.contract.asked import NODES
from jobs.contract.terms import Check, EngineMode
from orchestrator.asked import waiver_file
from orchestrator.asked.conf_files import ConfFiles, nearest
from orchestrator.asked.config import (
    EMULATED,
    EMULATED_KEYS,
    EMULATED_VENDORS,
    Backend,
    Build,
    Hardware,
    Model,
    Proof,
    Speed,
    Suite,
)
from orchestrator.asked.policies import Gate
from orchestrator.taxonomy import taxonomy

Entry = TypeVar("Entry")

LAYERS = 3
"""Mistakes are left out so often, at most: without a key, what holds it may lack it."""

OF_THE_RUN = ("node_rank", "master_addr", "master_port")

TORCH_BACKEND = re.compile(r"auto|cpu|xpu|cu\d{2,3}|rocm\d+(\.\d+){1,2}")


def find(raw: Mapping[str, Any], files: ConfFiles) -> Iterator[str]:
    """Of what is sound otherwise, so that every mistake is said at once."""
    for name, build in _sound(Build, raw.get("build")):
        yield from _of_build(build, raw["build"][name], files.place("build", name), files)
    for name, model in _sound(Model, raw.get("model")):
        yield from _of_model(model, files.place("model", name))
        yield from _of_nodes(model, files.place("model", name))
    for name, backend in _sound(Backend, raw.get("backend")):
        yield from _of_backend(backend, files.place("backend", name))
    for name, hardware in _sound(Hardware, raw.get("hardware")):
        yield from _of_hardware(hardware, raw["hardware"][name], files.place("hardware", name))
    for _, gate in _sound(Gate, {"gate": raw.get("gate")}):
        yield from _of_gate(gate, files)
    for _, suite in _sound(Suite, {"suite": raw.get("suite")}):
        yield from _of_suite(suite, raw, files)
    yield from _of_evidence(raw.get("evidence"))


def _sound(kind: type[Entry], entries: Any) -> Iterator[tuple[str, Entry]]:
    adapter = pydantic.TypeAdapter(kind)
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        rest = copy.deepcopy(entry)
        for _ in range(LAYERS):
            try:
                yield name, adapter.validate_python(rest)
                break
            except pydantic.ValidationError as invalid:
                for mistake in invalid.errors():
                    _leave_out(rest, mistake["loc"])


def _leave_out(entry: Any, path: Sequence[int | str]) -> None:
    """The innermost key on the path, which is wrong or lacks something."""
    if not path:
        return
    *way, last = path
    place = entry
    with contextlib.suppress(KeyError, IndexError, TypeError):
        for part in way:
            place = place[part]
        if isinstance(place, dict) and last in place:
            del place[last]
            return
    _leave_out(entry, way)


def _of_build(build: Build, said: Mapping[str, Any], place: str, files: ConfFiles) -> Iterator[str]:
    origins = [o for o in ("release", "wheel", "interpreter") if said.get(o) is not None]
    if len(origins) != 1:
        yield (
            f"{place}: needs exactly one of release, wheel, interpreter, "
            f"but has {' and '.join(origins) or 'none'}"
        )
    if not TORCH_BACKEND.fullmatch(build.torch_backend):
        yield (
            f'{place}.torch_backend: "{build.torch_backend}" is none that uv takes: '
            "auto, cpu, xpu, cu130 and the like, rocm7.1 and the like"
        )
    for patch in build.patches:
        if files.find(patch) is None:
            looked = ", ".join(map(str, files.folders))
            yield f"{place}.patches: there is no file {patch} (looked in {looked})"
    for origin in ("wheel", "interpreter", "checkout"):
        if (path := getattr(build, origin)) is not None and not Path(path).exists():
            yield f"{place}.{origin}: there is no {path}"


def _of_model(model: Model, place: str) -> Iterator[str]:
    path = Path(model.path)
    if model.path.startswith(".") or (path.is_dir() and not path.is_absolute()):
        yield (
            f"{place}.path: {model.path} must be absolute, since a cell runs in a folder of its"
            f" own: {path.resolve()}"
        )


def _of_nodes(model: Model, place: str) -> Iterator[str]:
    asked, place = model.engine_args, f"{place}.engine_args"
    nodes = asked.get(NODES, 1)
    if not isinstance(nodes, int) or nodes < 1:
        yield f"{place}.{NODES}: {nodes} is no number of nodes"
    elif model.devices % nodes:
        yield f"{place}.{NODES}: {nodes} nodes can't share devices: {model.devices} evenly"
    elif nodes > 1 and asked.get("data_parallel_size", 1) != 1:
        yield (
            f"{place}: data_parallel_size with {NODES} is not supported: split by "
            "tensor_parallel_size or pipeline_parallel_size"
        )
    yield from _of_meeting(asked, place)


def _of_backend(backend: Backend, place: str) -> Iterator[str]:
    place = f"{place}.engine_args"
    if NODES in backend.engine_args:
        yield f"{place}.{NODES}: say it in the model, with the devices that its engine takes"
    yield from _of_meeting(backend.engine_args, place)


def _of_meeting(asked: Mapping[str, Any], place: str) -> Iterator[str]:
    for name in OF_THE_RUN:
        if name in asked:
            yield f"{place}.{name}: leave it out: it is chosen when the engine starts"


def _of_hardware(hardware: Hardware, said: Mapping[str, Any], place: str) -> Iterator[str]:
    if place.endswith(EMULATED):
        yield f'{place}: a name that ends with "{EMULATED}" would look like an emulated card'
    if EngineMode.EMULATED not in hardware.engine_modes:
        return
    if hardware.vendor not in EMULATED_VENDORS:
        vendors = " and ".join(EMULATED_VENDORS)
        yield f"{place}.engine_modes: only cards of {vendors} can be emulated"
    elif missing := [key for key in EMULATED_KEYS if said.get(key) is None]:
        yield f"{place}: can't be emulated without {', '.join(missing)}"


def _of_gate(gate: Gate, files: ConfFiles) -> Iterator[str]:
    for number, waiver in enumerate(gate.waivers):
        yield from waiver_file.of_one(waiver, files.place("gate", "waivers", str(number)))
    for name in gate.waiver_files:
        yield from waiver_file.read(name, files)[1]


def _of_suite(suite: Suite, raw: Mapping[str, Any], files: ConfFiles) -> Iterator[str]:
    for number, rule in enumerate(suite.expectations):
        place = files.place("suite", "expectations", str(number), "expect", "category")
        yield from _of_category(rule.expect.category, place)
    place = files.place("suite", "check")
    if raw.get("engine_mode") == EngineMode.EMULATED and suite.check is Check.GENERATE:
        yield f"{place}: emulated engines can't {suite.check}: set suite.check=init"
    if raw.get("engine_mode") == EngineMode.EMULATED and suite.check is Check.SPEED:
        yield (
            f"{place}: emulated engines have no speed, since no kernel runs: measure real ones "
            "with engine_mode=real, or set suite.check=init"
        )
    if suite.check is Check.SPEED:
        yield from _of_speed(suite.speed, raw, files)
    if suite.check is Check.IMPORT and (asking := [*_asking(raw)]):
        yield (
            f"{place}: import makes no engine, so the requests of "
            f"{', '.join(asking)} would come to nothing: set suite.check=init, or backend=[auto]"
        )
    if suite.proof is not None:
        builds = raw.get("build")
        chosen = sorted(builds) if isinstance(builds, Mapping) else []
        yield from _of_proof(suite.proof, chosen, files)


def _of_speed(speed: Speed, raw: Mapping[str, Any], files: ConfFiles) -> Iterator[str]:
    tokens = speed.prompt_tokens + speed.output_tokens
    for name, model in _sound(Model, raw.get("model")):
        place, asked = f"{files.place('model', name)}.engine_args", model.engine_args
        most = asked.get("max_model_len")
        if isinstance(most, int) and most < tokens:
            yield (
                f"{place}.max_model_len: {most} is not enough for suite.speed's prompt_tokens and "
                f"output_tokens, {tokens} together"
            )
        if asked.get("data_parallel_size", 1) != 1 or asked.get(NODES, 1) != 1:
            yield f"{place}: the speed of several engines, or of several nodes, can't be measured"


def _asking(raw: Mapping[str, Any]) -> Iterator[str]:
    for name, backend in _sound(Backend, raw.get("backend")):
        if backend != Backend(vendors=backend.vendors, env=backend.env):
            yield name


def _of_proof(proof: Proof, builds: Sequence[str], files: ConfFiles) -> Iterator[str]:
    place = files.place("suite", "proof")
    yield from _of_category(proof.category, f"{place}.category")
    for build, times in Counter(proof.builds).items():
        if times > 1:
            yield f"{place}: {build} has {times} parts, and a build proves nothing about itself"
        if build not in builds:
            yield (
                f"{place}: there is no build {build} among those chosen "
                f"({', '.join(builds) or 'none'}).{nearest(build, builds)}"
            )


def _of_category(category: str | None, place: str) -> Iterator[str]:
    known: Sequence[str] = sorted(taxonomy().categories)
    if category is not None and category not in known:
        yield (
            f'{place}: there is no category "{category}"; allowed: {", ".join(known)}.'
            f"{nearest(category, known)}"
        )


def _of_evidence(paths: Any) -> Iterator[str]:
    for path in paths if isinstance(paths, list) else ():
        if not Path(str(path)).expanduser().exists():
            yield f"evidence: there is no {path}"
