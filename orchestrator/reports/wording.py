"""Words that the forms of report share."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode
from orchestrator.asked.config import RequestVerdict
from orchestrator.concluded.changes import Change
from orchestrator.concluded.facts import Difference
from orchestrator.concluded.judge import Verdict
from orchestrator.concluded.proof import Regression
from orchestrator.reports.document import Document
from orchestrator.reports.rows import CellRow, RequestRow

NOTHING = "-"


def count(number: int, thing: str) -> str:
    """`1 cell`, `1,200 cells`"""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def sections(cells: tuple[CellRow, ...]) -> list[tuple[str, list[CellRow]]]:
    """Cells by card and build, which are what people compare; order is kept."""

    def place(row: CellRow) -> tuple[str, str]:
        return row.card, row.build.name

    order = {key: number for number, key in enumerate(dict.fromkeys(map(place, cells)))}
    ordered = sorted(cells, key=lambda row: order[place(row)])
    return [(_title(rows), rows) for _, found in groupby(ordered, place) if (rows := [*found])]


def attention(row: CellRow, owner: str) -> str:
    """`CPU_ATTN`, `TRITON_ATTN → CPU_ATTN dropped`, `NO_SUCH refused`, or `-`."""
    return became(row.requests.get(f"{owner}.attention_backend"))


def got(row: CellRow, owner: str) -> str:
    """The attention backend, and what its layers got besides: `TRITON_MLA, MoE TRITON`."""
    groups, moe = (row.target, row.target_moe) if owner == "target" else (row.draft, row.draft_moe)
    prefills = [group.mla_prefill_backend for group in groups]
    besides = [f"prefill {name.rsplit('.', 1)[-1]}" for name in prefills if name is not None]
    besides += [f"MoE {group.backend or group.quant_method}" for group in moe]
    return ", ".join(dict.fromkeys([attention(row, owner), *besides]))


def other_requests(row: CellRow) -> str:
    """What was asked beside attention: `moe_backend triton refused`."""
    return ", ".join(
        f"{name.removeprefix('target.')} {became(request)}"
        for name, request in row.requests.items()
        if request.asked is not None and not name.endswith("attention_backend")
    )


def verdict(row: CellRow) -> str:
    """`passed (refused)` is a cell that was refused, as the suite expects."""
    if row.waived:
        return f"{row.verdict} (waived)"
    if is_witness(row):
        return f"{row.verdict} ({row.arm})"
    expected = row.verdict == "passed" and row.outcome != "runs"
    return f"{row.verdict} ({row.outcome})" if expected else str(row.verdict)


def is_witness(row: CellRow) -> bool:
    """Whether it failed with a build that is there to fail, and that nobody ships."""
    return row.verdict is Verdict.FAILED and row.arm not in {None, "after"}


def seconds(row: CellRow) -> str:
    return NOTHING if row.seconds is None else f"{row.seconds:.1f}"


def why(row: CellRow) -> str:
    """What to know about a cell that did not simply run."""
    if row.verdict != "passed":
        return "; ".join(row.reasons)
    return row.failure.cause if row.failure is not None else ""


def help_with(row: CellRow) -> tuple[str, ...]:
    """Who can do what about a cell that did not pass, and the lines that show its cause."""
    if row.failure is None or row.verdict is Verdict.PASSED:
        return ()
    return f"{row.failure.owner}: {row.failure.next}", *row.failure.excerpt


def became(request: RequestRow | None) -> str:
    if request is None:
        return NOTHING
    if request.asked is None:
        return request.got or NOTHING
    match request.verdict:
        case RequestVerdict.HONOURED:
            return f"{request.asked} honoured"
        case RequestVerdict.DROPPED:
            return f"{request.asked} → {request.got or 'nothing'} dropped"
        case verdict:
            return f"{request.asked} {verdict}"


def emulation(report: Document) -> str:
    """What every reader of an emulated matrix has to know; nothing where every engine was real."""
    emulated = sum(row.engine_mode is EngineMode.EMULATED for row in report.cells)
    if not emulated:
        return ""
    sets = {one.packages.name: one.packages for one in report.emulations.values()}
    return (
        f"{emulated} of {len(report.cells)} cells are emulated: vLLM's own start-up code ran on "
        "tensors without storage in a process that believes it has the card; no kernel ran and "
        f"no weight was loaded. Package sets: {'; '.join(map(packages, sets.values())) or 'none'}."
        + (f" A real card confirms {len(report.confirmed)} of them." if report.confirmed else "")
    )


def packages(packages: PackageSet) -> str:
    """`vllm-openai (flashinfer-python 0.7.0; assumed: deep_gemm)`"""
    parts = [", ".join(packages.installed)] if packages.installed else []
    if packages.assumed:
        parts.append(f"assumed: {', '.join(packages.assumed)}")
    return f"{packages.name} ({'; '.join(parts) or 'empty'})"


def regressions(found: Iterable[Regression]) -> Iterator[tuple[str, str]]:
    """Cell, and what became of it; the cell's id begins with its card."""
    for each in found:
        named = each.category is None or each.category in each.reason
        kind = "" if named else f" ({each.category})"
        yield each.cell_id, f"passes with {each.passes_with}, fails here{kind}: {each.reason}"


def changelog(changes: Iterable[Change]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """
    `v0_31 → v0_32`, and its changes: the cells that changed, and what changed in them.
    Cards that changed alike stand together.
    """
    for step, found in groupby(changes, key=lambda change: (change.before, change.after)):
        cards: dict[tuple[str, str, tuple[Difference, ...]], list[str]] = {}
        for change in found:
            alike = (change.model, change.backend, change.differences)
            cards.setdefault(alike, []).append(change.card)
        yield (
            " → ".join(step),
            [
                (f"{model} / {backend}, {', '.join(alike)}", _differences(differences))
                for (model, backend, differences), alike in cards.items()
            ],
        )


def _differences(differences: Iterable[Difference]) -> str:
    return "; ".join(map(str, differences))


def build(rows: Iterable[CellRow]) -> list[str]:
    """What to know of the one build of these cells: version, checkout, patches."""
    rows = [*rows]
    version = next((each.build.vllm_version for each in rows if each.build.vllm_version), None)
    parts = [f"vLLM {version}"] if version else []
    if rows[0].build.checkout:
        parts.append("from a checkout")
    if rows[0].build.patches:
        parts.append(f"patched: {', '.join(rows[0].build.patches)}")
    return parts


def _title(rows: list[CellRow]) -> str:
    row = rows[0]
    emulated = ["emulated"] if row.engine_mode is EngineMode.EMULATED else []
    return " · ".join([row.hardware, *emulated, row.build.name, *build(rows)])
