"""Words that the forms of report share."""

from itertools import groupby

from orchestrator.config import RequestVerdict
from orchestrator.reports.document import CellRow, RequestRow

NOTHING = "-"


def sections(cells: tuple[CellRow, ...]) -> list[tuple[str, list[CellRow]]]:
    """Cells by hardware and build, which are what people compare; order is kept."""

    def place(row: CellRow) -> tuple[str, str]:
        return row.hardware, row.build.name

    order = {key: number for number, key in enumerate(dict.fromkeys(map(place, cells)))}
    ordered = sorted(cells, key=lambda row: order[place(row)])
    return [(_title(rows), rows) for _, found in groupby(ordered, place) if (rows := [*found])]


def attention(row: CellRow, owner: str) -> str:
    """`CPU_ATTN`, `TRITON_ATTN → CPU_ATTN dropped`, `NO_SUCH refused`, or `-`."""
    return _became(row.requests.get(f"{owner}.attention_backend"))


def other_requests(row: CellRow) -> str:
    """What was asked beside attention: `moe_backend triton refused`."""
    return ", ".join(
        f"{name.removeprefix('target.')} {_became(request)}"
        for name, request in row.requests.items()
        if request.asked is not None and not name.endswith("attention_backend")
    )


def verdict(row: CellRow) -> str:
    """`passed (refused)` is a cell that was refused, as the suite expects."""
    if row.waived:
        return f"{row.verdict} (waived)"
    expected = row.verdict == "passed" and row.outcome != "runs"
    return f"{row.verdict} ({row.outcome})" if expected else str(row.verdict)


def seconds(row: CellRow) -> str:
    return NOTHING if row.seconds is None else f"{row.seconds:.1f}"


def why(row: CellRow) -> str:
    """What to know about a cell that did not simply run."""
    if row.verdict != "passed":
        return "; ".join(row.reasons)
    return row.failure.cause if row.failure is not None else ""


def _became(request: RequestRow | None) -> str:
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


def _title(rows: list[CellRow]) -> str:
    row = rows[0]
    version = next((each.build.vllm_version for each in rows if each.build.vllm_version), None)
    parts = [row.hardware, row.build.name]
    if version:
        parts.append(f"vLLM {version}")
    if row.build.checkout:
        parts.append("from a checkout")
    if row.build.patches:
        parts.append(f"patched: {', '.join(row.build.patches)}")
    return " · ".join(parts)
