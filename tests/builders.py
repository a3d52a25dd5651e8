"""Short ways to say 'some cell', so that a test names only what it is about."""

from dataclasses import replace
from typing import Any

from jobs.contract.asked import Deadlines
from jobs.contract.attempts import Attempt, Exit, Placement
from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.contract.emulation import Emulated, PackageSet
from jobs.contract.seen import AttentionGroup, Engine, ExceptionSeen, Failure, ProbeReport
from jobs.contract.terms import Check, EngineMode, Isolation, Phase
from orchestrator.asked.cell_requests import card
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Asked, Backend, Expectation, Hardware, Model, Outcome, Runner
from orchestrator.concluded.judge import Judgement, Verdict
from orchestrator.concluded.record import Record

EAGLE3 = {"method": "eagle3", "model": "shipped:eagle3", "num_speculative_tokens": 2}

H100 = Hardware(
    vendor="nvidia",
    card="h100",
    arch="sm_90",
    memory_gib=80,
    product="NVIDIA H100 80GB HBM3",
    compute_units=132,
    shared_memory_kib=227,
    engine_modes=(EngineMode.REAL, EngineMode.EMULATED),
)
MI300X = Hardware(
    vendor="amd",
    card="mi300x",
    arch="gfx942",
    memory_gib=192,
    product="AMD Instinct MI300X",
    compute_units=304,
    shared_memory_kib=64,
    pci_device="0x74a1",
    engine_modes=(EngineMode.REAL, EngineMode.EMULATED),
)


def a_cell(  # noqa: PLR0913  # each is what some test is about
    cell_id: str = "cpu/llama/auto/v0_32",
    *,
    target: Asked | None = None,
    draft: Asked | None = None,
    runner: Runner | None = None,
    speculative: dict[str, Any] | None = None,
    moe: bool = False,
    hardware: Hardware | None = None,
    expect: Expectation | None = None,
    attempts: int = 2,
    **model: Any,
) -> Cell:
    return Cell(
        id=cell_id,
        hardware=hardware or Hardware(vendor="cpu"),
        model=Model(path="shipped:llama", speculative=speculative, moe=moe, **model),
        backend=Backend(target=target or Asked(), draft=draft or Asked(), runner=runner),
        build=BuildSpec(name=cell_id.rsplit("/", 1)[-1], release="0.32.0"),
        check=Check.GENERATE,
        engine_mode=EngineMode.REAL,
        isolation=Isolation.WARM,
        deadlines=Deadlines(attempt_s=60, quiet_s=60),
        attempts=attempts,
        expectation=expect or Expectation(),
    )


def an_emulated_cell(cell_id: str = "h100-emulated/llama/auto/v0_32_gpu", **more: Any) -> Cell:
    cell = a_cell(cell_id, **{"hardware": H100} | more)
    return replace(cell, engine_mode=EngineMode.EMULATED, check=Check.INIT)


def a_build(name: str = "v0_32", *, digest: str = "d1", **more: Any) -> ProvisionedBuild:
    return ProvisionedBuild(
        name=name,
        digest=digest,
        python="python",
        vllm_version=more.pop("vllm_version", "0.32.0"),
        torch_version="2.13.0",
        **more,
    )


def groups(*backends: str, **more: Any) -> tuple[AttentionGroup, ...]:
    return tuple(
        AttentionGroup(
            kv_group=number,
            backend=backend,
            class_path=f"vllm.{backend}",
            layers=2,
            layer_names=(f"layers.{number}.attn", f"layers.{number + 2}.attn"),
            kv_cache_dtype=more.get("kv_cache_dtype", "auto"),
            block_size=16,
        )
        for number, backend in enumerate(backends)
    )


def a_report(*, ready: bool = True, runner: str | None = "V1", **more: Any) -> ProbeReport:
    return ProbeReport(
        cell_id="cpu/llama/auto/v0_32",
        attempt=1,
        engine_mode=EngineMode.REAL,
        pid=1,
        ready=ready,
        vllm_path="vllm",
        target=more.pop("target", groups("CPU_ATTN") if ready else ()),
        engine=Engine(runner=runner if ready else None, kv_layout="LBNHC"),
        phase=more.pop("phase", Phase.TEARDOWN if ready else Phase.LOAD),
        **more,
    )


def an_emulated_report(
    cell: Cell, *, installed: tuple[str, ...] = (), assumed: tuple[str, ...] = (), **more: Any
) -> ProbeReport:
    packages = PackageSet(name="image", installed=installed, assumed=assumed)
    emulated = Emulated(card=card(cell), packages=packages, stubs=(), replaced=())
    report = a_report(**more)
    return replace(report, engine_mode=EngineMode.EMULATED, emulated=emulated)


def a_failure(message: str, *, phase: Phase = Phase.LOAD, type_: str = "ValueError") -> Failure:
    """An exception that something wrapped, as they come."""
    return Failure(
        phase=phase,
        chain=(
            ExceptionSeen(type="RuntimeError", message="Engine core initialization failed."),
            ExceptionSeen(type=type_, message=message, where="vllm/x.py:1 f"),
        ),
    )


def a_failed_report(message: str, **more: Any) -> ProbeReport:
    failure = a_failure(message, **more)
    ready = failure.phase is Phase.GENERATE
    return a_report(ready=ready, failure=failure, phase=failure.phase)


def an_attempt(report: ProbeReport | None = None, **more: Any) -> Attempt:
    return Attempt(
        cell_id=more.pop("cell_id", "cpu/llama/auto/v0_32"),
        number=more.pop("number", 1),
        placement=Placement(node="n1"),
        isolation=Isolation.WARM,
        exit=more.pop("exit", Exit(code=0)),
        phase=more.pop("phase", report.phase if report else Phase.LOAD),
        seconds=more.pop("seconds", 3.0),
        report=report,
        log="probe.log",
        **more,
    )


def a_record(
    cell_id: str = "cpu/llama/auto/v0_32",
    verdict: Verdict = Verdict.PASSED,
    category: str | None = None,
    outcome: Outcome | None = None,
    **more: Any,
) -> Record:
    reasons = () if verdict is Verdict.PASSED else ("for a reason",)
    return Record(
        cell_id=cell_id,
        judgement=Judgement(verdict=verdict, category=category, outcome=outcome, reasons=reasons),
        **more,
    )
