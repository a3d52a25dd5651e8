"""One cell, in this process: start the engine, read it, let it generate, report."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from jobs import memory
from jobs.contract.asked import ProbeRequest, request_from_json
from jobs.contract.emulation import PARALLEL_SIZES
from jobs.contract.seen import Failure, ProbeReport
from jobs.contract.terms import Check, EngineMode, Phase
from jobs.probe import (
    architectures,
    children,
    environment,
    error_log,
    exceptions,
    files,
    identity,
    observers,
    phases,
    rejections,
    replicas,
    seats,
    shipped,
    speed,
    warming,
    wording,
)
from jobs.probe.emulation import limits, loader
from jobs.probe.emulation import start as emulation
from jobs.probe.notes import Notes
from jobs.probe.reading import extension, ranks, unfinished
from jobs.probe.reading.naming import follow

PROMPT = (1, 5, 6, 7, 5, 6, 7)
"""Token ids that every vocabulary has; the repetition gives n-gram drafts something to find."""

NEW_TOKENS = 8

PATIENCE_S = 10
"""With an engine's processes, once they were told to end."""


def preload() -> None:
    """Import what cells need, without touching a device: whoever forks this process saves it."""
    environment.prepare()
    # What goes wrong is for the cells to report.
    with contextlib.suppress(Exception):
        emulation.install()
    warming.import_everything()


def run(request_file: Path, report_file: Path) -> None:
    """Try the cell and leave a report, whatever happens to the engine."""
    folder = report_file.parent
    phases.enter(folder, Phase.PREPARE)
    request = request_from_json(request_file.read_text())
    wording.mask_arguments_of(request_file)
    report = ProbeReport(
        cell_id=request.cell_id,
        attempt=request.attempt,
        engine_mode=request.engine_mode,
        pid=os.getpid(),
    )
    # The engine may raise anything at all, and call exit; whatever it is, it is a finding.
    try:
        for seen in _observe(request, folder):
            report = dataclasses.replace(report, **seen)
            _write(report, folder, report_file)
    except BaseException as error:  # noqa: BLE001
        report = _failed(report, error, folder)
    _write(report, folder, report_file)
    _tell_memory(folder)
    _end_children()


def _observe(request: ProbeRequest, folder: Path) -> Iterator[dict[str, Any]]:
    """What is seen, as fields of the report, as soon as it is seen."""
    environment.prepare()
    environment.enter(folder)
    error_log.arm_stack_dumps()

    phases.enter(folder, Phase.IMPORT)
    emulation.install()
    _check_what_is_real(request)
    from vllm import LLM

    if _has_children(request):
        error_log.configure_children(folder)
    observers.install()
    architectures.inspect_here()
    yield identity.read(request.sources)
    if request.check is Check.IMPORT:
        phases.enter(folder, Phase.TEARDOWN)
        return

    phases.enter(folder, Phase.CONFIG)
    arguments = shipped.resolve(request.engine_args)
    if request.card is not None:
        emulation.have(request.card.devices)
        arguments |= {"load_format": loader.FORMAT}
    arguments |= {"worker_extension_cls": extension.NAME} | seats.taken(request.seat)
    if request.workload is not None:
        # What drafts come to is told nowhere else.
        arguments["disable_log_stats"] = False
    if request.seat is not None and request.seat.number:
        seats.follow(arguments)
    size = arguments.pop(replicas.SIZE, 1)
    others = replicas.fork(size, lambda first: _follow(first, LLM(**arguments)))
    llm = LLM(**arguments)

    phases.enter(folder, Phase.READY)
    texts = [*llm.collective_rpc(extension.METHOD), *others.readings()]
    yield {"ready": True, **ranks.read(texts)}

    if request.check in {Check.GENERATE, Check.SPEED}:
        phases.enter(folder, Phase.GENERATE)
        if request.engine_mode is EngineMode.EMULATED:
            raise limits.EmulationLimit(f"check={request.check}", "no kernel runs in emulation")
        others.generate()
        yield {"tokens": _generated(llm)}
    if request.workload is not None:
        phases.enter(folder, Phase.MEASURE)
        yield {"speed": speed.measured(llm, request.workload)}

    phases.enter(folder, Phase.TEARDOWN)
    others.end()
    _shut_down(llm.llm_engine.engine_core)


def _follow(first: Connection, llm: Any) -> None:
    """What another engine of the cell does, until the first one hangs up."""
    first.send(llm.collective_rpc(extension.METHOD))
    with contextlib.suppress(EOFError):
        while first.recv() == replicas.GENERATE:
            _generated(llm)
    _shut_down(llm.llm_engine.engine_core)


def _generated(llm: Any) -> tuple[int, ...]:
    from vllm import SamplingParams

    sampling = SamplingParams(
        max_tokens=NEW_TOKENS, temperature=0, ignore_eos=True, detokenize=False
    )
    outputs = llm.generate([{"prompt_token_ids": list(PROMPT)}], sampling, use_tqdm=False)
    return tuple(outputs[0].outputs[0].token_ids)


def _check_what_is_real(request: ProbeRequest) -> None:
    """Nothing emulated may ever look real."""
    emulated = emulation.asked() is not None
    if emulated is not (request.engine_mode is EngineMode.EMULATED):
        raise ValueError(f"engine_mode={request.engine_mode}, but {emulated=} in this process")


def _has_children(request: ProbeRequest) -> bool:
    """Whether the engine is more than this process."""
    asked = request.engine_args
    return (
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] != "0"
        or asked.get("distributed_executor_backend", "uni") != "uni"
        or max(asked.get(size, 1) for size in PARALLEL_SIZES) > 1
    )


def _shut_down(core: Any) -> None:
    """End the engine's processes. What it has in this one goes when this one does."""
    if follow(core, "engine_core") is None or multiprocessing.active_children():
        core.shutdown()
        return
    # Freeing it first would collect all garbage, twice, for longer than the cell took to start.
    finalizer = follow(core, "_finalizer")
    if finalizer is not None:
        finalizer.detach()


def _tell_memory(folder: Path) -> None:
    """A node that looks now and then would miss what a small engine has for a moment only."""
    with contextlib.suppress(OSError):  # the report counts, and is there
        files.replace(folder / "memory.json", json.dumps({"own_mib": memory.own_mib(os.getpid())}))


def _end_children() -> None:
    """What Python does when it exits in order, which a probe does not: see `__main__`."""
    children = multiprocessing.active_children()
    for child in children:
        child.terminate()
    for child in children:
        child.join(PATIENCE_S)


def _failed(report: ProbeReport, error: BaseException, folder: Path) -> ProbeReport:
    """The report with its failure; what was seen before stays in it."""
    chain = exceptions.chain(error)
    elsewhere = error_log.first_elsewhere(folder)
    entered = phases.history(folder)[-1].phase
    if elsewhere is None:
        failure = Failure(phase=entered, chain=(*children.ended(), *chain))
    else:
        failure = Failure(
            phase=observers.phase_of(elsewhere.functions) or entered,
            chain=(*chain, *elsewhere.chain),
            process=elsewhere.process,
        )
    notes = Notes()
    if not report.ready:
        seen = notes.attempt("what was constructed", unfinished.read, {})
        report = dataclasses.replace(report, **seen)
    reasons = report.rejections or notes.attempt("rejections", rejections.of_this_process, ())
    return dataclasses.replace(
        report,
        failure=failure,
        rejections=(*reasons, *rejections.of_error(failure.chain)),
        notes=(*report.notes, *notes.lines),
    )


def _write(report: ProbeReport, folder: Path, report_file: Path) -> None:
    entered = phases.history(folder)
    stamped = dataclasses.replace(
        report,
        phases=phases.times(entered, until=time.monotonic()),
        phase=entered[-1].phase,
        emulated=emulation.seen(),
    )
    # The node would do it too, if it lives.
    shown = wording.mask().value(dataclasses.asdict(stamped))
    files.replace(report_file, json.dumps(shown, indent=1, ensure_ascii=False))
