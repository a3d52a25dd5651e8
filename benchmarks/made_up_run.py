"""A large run that nobody ran: real cells, and attempts as varied as those of real engines."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jobs.contract.attempts import Attempt, Exit, Placement
from jobs.contract.builds import ProvisionedBuild
from jobs.contract.emulation import Emulated, PackageSet
from jobs.contract.seen import (
    AttentionGroup,
    Engine,
    ExceptionSeen,
    Failure,
    PhaseTime,
    ProbeReport,
    Rejection,
    Selection,
)
from jobs.contract.terms import EngineMode, Isolation, Phase
from orchestrator.asked.cell_requests import card
from orchestrator.asked.cells import Cell
from orchestrator.asked.compose import compose, options
from orchestrator.asked.policies import Gate, Waiver
from orchestrator.concluded.judge import judge
from orchestrator.concluded.record import Record
from orchestrator.kept.run_directory import Asked, RunDirectory
from orchestrator.run import cells_of

MODELS = (
    *("llama31_8b", "qwen3_8b", "gemma3_27b", "gpt_oss_20b", "mixtral_8x7b", "deepseek_v3"),
    *("llama31_8b_eagle3", "llama31_8b_eagle", "llama31_8b_ngram", "deepseek_v3_mtp"),
    *("qwen3_8b_dflash", "glm45_air_mtp"),
)
BACKENDS = (
    *("auto", "triton_attn", "flashinfer", "flex_attention", "moe_triton", "v2"),
    *("draft_triton_attn", "draft_kv_fp8", "v1_draft_triton_attn"),
)
BUILDS = {"v0_28_gpu": "0.28.0", "v0_30_gpu": "0.30.0", "v0_32_gpu": "0.32.0"}

CHOICE = {"nvidia": ("FLASH_ATTN", "FLASHINFER"), "amd": ("ROCM_ATTN", "TRITON_ATTN")}
OTHERS = tuple(f"BACKEND_{number}" for number in range(30))
REASONS = ("MLA not supported", "head_size not supported", "compute capability not supported")
FAILURES = (
    "No KV cache layout satisfies every supported set: [['LBNHC'], ['LHBNC', 'LBHNC']].",
    "Attention backend {name} was requested, but it is not valid here. <b>{number}</b>",
    "shape '[-1, {number}]' is invalid for input of size {number}7",
)
PHASES = (Phase.CONFIG, Phase.INIT_DEVICE, Phase.LOAD, Phase.PROFILE, Phase.KV_CACHE, Phase.READY)
LOG_LINES = 60


def write(folder: Path, count: int) -> RunDirectory:
    """In *folder*, with records and logs; the same for the same number of cells."""
    chance = random.Random(count)  # noqa: S311  # nobody has to guess it
    words = _words()
    cells = cells_of(compose(words))[:count]
    asked = Asked(suite="made-up", command=tuple(words), gate=_gate(), cells=cells)
    run = RunDirectory(folder)
    run.note(asked)
    run.records.append(*_records(run, cells, chance))
    return run


def _words() -> list[str]:
    cards = [name for name in options("hardware") if name != "cpu"]
    axes = {"hardware": cards, "model": MODELS, "backend": BACKENDS, "build": BUILDS}
    chosen = [f"{axis}=[{','.join(names)}]" for axis, names in axes.items()]
    return ["engine_mode=emulated", "suite.check=init", *chosen]


def _gate() -> Gate:
    known = Waiver(cells="*/v0_28_gpu", category="silent_fallback", reason="known", owner="me")
    return Gate(waivers=(known,))


def _records(run: RunDirectory, cells: Sequence[Cell], chance: random.Random) -> Iterator[Record]:
    """One cell in fifty has none."""
    for cell in cells:
        if chance.random() > 0.02:
            build, attempt = _build(cell), _attempt(run, cell, chance)
            judgement = judge(cell, build, attempt)
            yield Record(cell_id=cell.id, build=build, attempt=attempt, judgement=judgement)


def _build(cell: Cell) -> ProvisionedBuild:
    return ProvisionedBuild(
        name=cell.build.name,
        digest=f"{cell.build.name}-{'0' * 40}",
        python="python",
        vllm_version=BUILDS[cell.build.name],
        torch_version="2.13.0",
        engine_mode=EngineMode.EMULATED,
    )


def _attempt(run: RunDirectory, cell: Cell, chance: random.Random) -> Attempt:
    report = _report(cell, chance)
    folder = run.cells / cell.id / "1"
    log = folder / "probe.log"
    if report.failure is not None:
        folder.mkdir(parents=True)
        log.write_text("\n".join(_log(chance)))
    return Attempt(
        cell_id=cell.id,
        number=1,
        placement=Placement(node=f"node-{chance.randrange(16)}"),
        isolation=Isolation.WARM,
        exit=Exit(code=0),
        phase=report.phase,
        seconds=sum(time.seconds for time in report.phases),
        report=report,
        log=str(log),
    )


def _log(chance: random.Random) -> Iterator[str]:
    for number in range(LOG_LINES):
        yield (
            f"(EngineCore pid={chance.randrange(99999)}) INFO 12-03 05:14:{number:02} "
            f"[core.py:{number}] step {chance.randrange(10**6)} took {chance.random():.6f} s <b>"
        )


def _report(cell: Cell, chance: random.Random) -> ProbeReport:
    """One in eight fails; one in twelve of those that run got something else for its draft."""
    # The selector answers alike wherever it is asked the same.
    asked = random.Random(f"{cell.hardware.arch} {cell.axis('model')} {cell.build.name}")  # noqa: S311
    target = cell.backend.target.attention_backend or chance.choice(CHOICE[cell.hardware.vendor])
    draft = cell.backend.draft.attention_backend or target
    if chance.random() < 1 / 12:
        draft = "FLEX_ATTENTION"
    seen = ProbeReport(
        cell_id=cell.id,
        attempt=1,
        engine_mode=EngineMode.EMULATED,
        pid=chance.randrange(99999),
        versions={"vllm": BUILDS[cell.build.name], "torch": "2.13.0", "python": "3.11.7"},
        device={"type": "cuda", "name": cell.hardware.product or ""},
        vllm_path="vllm",
        phases=tuple(PhaseTime(phase=phase, seconds=chance.expovariate(3)) for phase in PHASES),
        phase=Phase.TEARDOWN,
        ready=True,
        target=(_group(target, 32, chance),),
        draft=(_group(draft, 1, chance),) if cell.model.speculative else (),
        engine=Engine(runner=chance.choice(("V1", "V2")), kv_layout=chance.choice(("LBNHC", None))),
        rejections=tuple(_rejections(asked)),
        selections=(_selection(target, asked),),
        emulated=_emulated(cell),
    )
    return _failed(seen, chance) if chance.random() < 1 / 8 else seen


def _failed(seen: ProbeReport, chance: random.Random) -> ProbeReport:
    message = chance.choice(FAILURES).format(
        name=chance.choice(OTHERS), number=chance.randrange(999)
    )
    raised = ExceptionSeen(
        type="ValueError",
        message=message,
        where=f"vllm/v1/engine/core.py:{chance.randrange(900)} _initialize",
    )
    phase = chance.choice((Phase.LOAD, Phase.KV_CACHE))
    failure = Failure(phase=phase, chain=(raised,))
    return replace(
        seen, ready=False, failure=failure, phase=phase, target=(), draft=(), engine=Engine()
    )


def _group(backend: str, layers: int, chance: random.Random) -> AttentionGroup:
    return AttentionGroup(
        kv_group=0,
        backend=backend,
        class_path=f"vllm.v1.attention.backends.{backend.lower()}.{backend.title()}Backend",
        layers=layers,
        layer_names=tuple(f"model.layers.{number}.self_attn.attn" for number in range(layers)),
        attention_kind="FullAttentionSpec",
        head_size=chance.choice((64, 128, 256)),
        kv_heads=chance.choice((4, 8, 16)),
        block_size=16,
        kv_cache_dtype="auto",
        kv_torch_dtype="bfloat16",
    )


def _rejections(chance: random.Random) -> Iterator[Rejection]:
    for backend in OTHERS:
        reasons = tuple(chance.sample(REASONS, chance.choice((1, 1, 1, 2))))
        yield Rejection(backend=backend, reasons=reasons, said_by="validation")


def _selection(asked: str, chance: random.Random) -> Selection:
    return Selection(
        asked=asked,
        question={"head_size": str(chance.choice((64, 128))), "dtype": "bfloat16"},
        accepted=tuple(chance.sample(("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"), 3)),
        rejected=tuple(_rejections(chance))[:6],
    )


def _emulated(cell: Cell) -> Emulated:
    return Emulated(
        card=card(cell),
        packages=PackageSet(name=f"vllm-{cell.hardware.vendor}", installed=("nvidia-ml-py",)),
        stubs=tuple(f"vllm.module_{number}" for number in range(20)),
        replaced=tuple(f"torch.cuda.function_{number}" for number in range(64)),
    )
