"""The whole story of one cell, in the order in which people ask, and how to see it again."""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from jobs.contract.emulation import Emulated
from jobs.contract.seen import AttentionGroup, MoeGroup, RankSeen, Rejection, Selection
from jobs.contract.terms import EngineMode
from jobs.secrets import MASK
from orchestrator.concluded.judge import Verdict
from orchestrator.reports import wording
from orchestrator.reports.document import Document
from orchestrator.reports.rows import CellRow, RequestRow

_DECIDED_HERE = ("suite.select=", "suite.exclude=", "resume=")
LOG_LINES = 40
LINE_CHARS = 240
ASKED = "asked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """What a report of one run does not have."""

    asked: Sequence[str] = ()
    log: Sequence[str] = ()
    history: Sequence[str] = ()


def to_text(
    report: Document, row: CellRow, command: Sequence[str], beside: Beside | None = None
) -> str:
    return "\n".join(_lines(report, row, command, beside or Beside())) + "\n"


def reproduce(cell_id: str, command: Sequence[str]) -> str:
    """The run's own command, narrowed to one cell, which is not to keep its verdict."""
    kept = [word for word in command if not word.lstrip("+").startswith(_DECIDED_HERE)]
    words = [*kept, f'suite.select=["{cell_id}"]', "suite.exclude=[]", "resume=false"]
    return shlex.join(["vllm-matrix", "run", *words])


def _lines(report: Document, row: CellRow, command: Sequence[str], beside: Beside) -> Iterator[str]:
    yield f"{row.id}: {wording.verdict(row)}"
    yield from standing(report, row)
    for title, lines in blocks(report, row):
        yield from _block(title, [*(beside.asked if title == ASKED else ()), *lines])
    yield from _block(f"log {row.log or ''}".strip(), (line[:LINE_CHARS] for line in beside.log))
    yield from _block("history", beside.history)
    yield from _block("show it to others", _for_others(report, row))
    yield from _block("run it alone", alone(report, row.id, command))


def standing(report: Document, row: CellRow) -> Iterator[str]:
    """How far a cell can be trusted, where that is not plain."""
    if row.engine_mode is EngineMode.EMULATED:
        yield "emulated: no such card was there, and no kernel ran"
    if row.id in report.confirmed:
        yield "confirmed: a real card did the very same"


def blocks(report: Document, row: CellRow) -> Iterator[tuple[str, Iterable[str]]]:
    """Everything known of it beside its log, by title; blocks without lines are not shown."""
    yield ASKED, _asked(row)
    yield "requests", (_request(*item) for item in row.requests.items())
    yield "target attention", map(_attention, row.target)
    yield "draft attention", map(_attention, row.draft)
    yield "target MoE", map(_moe, row.target_moe)
    yield "draft MoE", map(_moe, row.draft_moe)
    yield "engine", _engine(row)
    yield "ranks", map(_rank, row.ranks)
    yield "why", row.reasons
    yield "predicted ≠ observed", _disagreements(report, row)
    yield "failure", _failure(row)
    for number, selection in enumerate(row.selections, 1):
        yield f"selector, question {number}", _selection(selection)
    yield "backends not taken", _rejections(row.rejections)
    yield "phases", (f"{name:<12}{s:8.2f} s" for name, s in row.phases.items())
    yield "speed, the median of all rounds (and from the least to the most)", map(str, row.speed)
    yield "placement", _placement(row)
    yield "build", _build(row)
    if row.emulated is not None:
        yield "not real", _not_real(report.emulations[row.emulated])


def alone(report: Document, cell_id: str, command: Sequence[str]) -> Iterator[str]:
    """The command that runs one cell, and what to fill in there."""
    # One cell alone proves nothing.
    words = [*command, "suite.proof=null"] if report.proof is not None else command
    yield (line := reproduce(cell_id, words))
    if MASK in line:
        yield f"(for each {MASK}, fill in the secret that you had there)"


def telling_log(row: CellRow) -> str | None:
    """Of a failed engine only: a healthy one's log says little that the report does not."""
    return None if row.outcome in {None, "runs"} else row.log


def _block(title: str, lines: Iterable[str]) -> Iterator[str]:
    lines = list(lines)
    if lines:
        yield f"\n{title}"
        yield from (f"  {line}" for line in lines)


def _asked(row: CellRow) -> Iterator[str]:
    if row.asked:
        yield ", ".join(f"{name} {value}" for name, value in row.asked.items())
    else:
        yield "nothing of vLLM: it is free to choose"


def _for_others(report: Document, row: CellRow) -> Iterator[str]:
    where = shlex.join([report.run, row.id])
    yield f"vllm-matrix reproduce {where}: a script that needs no vllm-matrix"
    if row.verdict is Verdict.FAILED:
        yield f"vllm-matrix issue {where}: a report for vLLM's people"


def _disagreements(report: Document, row: CellRow) -> Iterator[str]:
    return (str(each) for each in report.disagreements if each.cell_id == row.id)


def _request(name: str, request: RequestRow) -> str:
    asked, got = request.asked or "nothing", request.got or "nothing"
    return f"{name}: asked {asked}, got {got}: {request.verdict}"


def attention_facts(group: AttentionGroup) -> dict[str, str]:
    facts = {
        "kind": group.attention_kind,
        "head size": group.head_size,
        "KV heads": group.kv_heads,
        "block size": group.block_size,
        "KV dtype": group.kv_torch_dtype or group.kv_cache_dtype,
        "sliding window": group.sliding_window,
        "prefill": group.mla_prefill_backend,
        "layouts": ", ".join(group.layouts) if group.layouts else "any",
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _attention(group: AttentionGroup) -> str:
    known = ", ".join(f"{name} {value}" for name, value in attention_facts(group).items())
    where = "no KV group" if group.kv_group is None else f"KV group {group.kv_group}"
    return f"{group.backend} ({group.class_path}), {group.layers} layers, {where}: {known}"


def _moe(group: MoeGroup) -> str:
    return f"{group.backend} ({group.experts_class or group.quant_method}), {group.layers} layers"


def _engine(row: CellRow) -> Iterator[str]:
    yield f"mode {row.engine_mode}, check {row.check}, outcome {row.outcome or 'none'}"
    if row.runner:
        yield f"runner {row.runner}, KV layout {row.kv_layout or 'not resolved'}"
    if row.versions:
        yield ", ".join(f"{name} {version}" for name, version in row.versions.items())


def _rank(rank: RankSeen) -> str:
    places = {"TP": rank.tensor, "PP": rank.pipeline, "DP": rank.data, "EP": rank.expert}
    place = ", ".join(f"{kind} {n}" for kind, n in places.items() if n is not None)
    where = f" on {rank.node}" if rank.node else ""
    return f"{rank.rank} ({place}){where}: {', '.join(_held(rank))}"


def _held(rank: RankSeen) -> Iterator[str]:
    for owner, groups in (("target", rank.target), ("draft", rank.draft)):
        yield from (f"{owner} {group.layers} layers {group.backend}" for group in groups)
    for owner, experts in (("target", rank.target_moe), ("draft", rank.draft_moe)):
        for group in experts:
            local = "" if group.local_experts is None else f" of {group.local_experts} experts"
            yield f"{owner} MoE {group.backend or group.quant_method}{local}"
    yield from filter(None, (rank.kv_layout, rank.runner))


def _rejections(rejections: Iterable[Rejection]) -> Iterator[str]:
    """Backends that share a reason stand together: most are for other hardware."""
    by_reason: dict[str, list[str]] = {}
    unasked = [rejection.backend for rejection in rejections if _cannot_tell(rejection)]
    for rejection in rejections:
        if _cannot_tell(rejection):
            continue
        reason = f"{'; '.join(rejection.reasons)} ({rejection.said_by})"
        by_reason.setdefault(reason, []).append(rejection.backend)
    for reason, backends in by_reason.items():
        yield f"{', '.join(backends)}: {reason}"
    if unasked:
        yield f"{', '.join(unasked)}: cannot be asked in this build and on this hardware"


def _selection(selection: Selection) -> Iterator[str]:
    """The table that decides a backend: what would serve in vLLM's order, and why others do not."""
    known = ", ".join(f"{name} {value}" for name, value in selection.question.items())
    yield f"{known}; asked {selection.asked or 'nothing'}"
    yield f"accepted: {', '.join(selection.accepted) or 'none'}"
    by_reason: dict[str, list[str]] = {}
    for rejection in selection.rejected:
        by_reason.setdefault("; ".join(rejection.reasons), []).append(rejection.backend)
    yield from (f"not {', '.join(names)}: {reason}" for reason, names in by_reason.items())


def _cannot_tell(rejection: Rejection) -> bool:
    """Its class needs another platform or package even to be asked; report.json has the reason."""
    return all(reason.startswith("cannot ") for reason in rejection.reasons)


def _failure(row: CellRow) -> Iterator[str]:
    if row.failure is not None:
        where = f" in {row.failure.phase}" if row.failure.phase else ""
        yield f"{row.failure.category}{where}, owner {row.failure.owner}"
        yield row.failure.cause
        yield f"next: {row.failure.next}"
        yield from (f"| {line}" for line in row.failure.excerpt)


def _build(row: CellRow) -> Iterator[str]:
    yield f"{row.build.name}: {row.build.origin}, {row.build.digest or 'never made ready'}"
    if row.build.checkout:
        yield f"checkout {row.build.checkout}"
    for name, digest in row.build.patches.items():
        yield f"patch {name} {digest[:12] if digest else 'never applied'}"
    yield from (f"found {file} {digest[:12]}" for file, digest in row.build.sources.items())


@cache
def _not_real(emulated: Emulated) -> tuple[str, ...]:
    """Many cells have the very same things not real."""
    return tuple(_pretended(emulated))


def _pretended(emulated: Emulated) -> Iterator[str]:
    card = emulated.card
    yield (
        f"the card {card.name}: {card.product}, {card.arch}, {card.memory_bytes / 2**30:.0f} GiB, "
        f"{card.compute_units} compute units, {card.shared_memory_bytes // 1024} KiB shared memory"
    )
    yield f"packages {wording.packages(emulated.packages)}"
    yield from _wrapped("by name only", emulated.stubs)
    yield from _wrapped("answering from the card's description", emulated.replaced)
    yield from emulated.notes


def _wrapped(title: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{title} ({len(names)}):"
        yield from (f"  {line}" for line in textwrap.wrap(", ".join(names), LINE_CHARS // 2))


def _placement(row: CellRow) -> Iterator[str]:
    if row.placement is not None:
        names = row.placement.node, *row.placement.others
        noun = "nodes" if row.placement.others else "node"
        yield f"{noun} {' and '.join(names)}, {row.placement.isolation} isolation"
        if device := row.placement.device:
            yield ", ".join(f"{name} {value}" for name, value in device.items())
        source = f", kept from {row.kept_from}" if row.kept_from else ""
        yield f"{row.seconds} s, attempt {row.attempts}{source}"
