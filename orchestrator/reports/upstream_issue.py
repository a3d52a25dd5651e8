"""An issue for vLLM's people, filled in from one record. What engines say stays text there."""

import shlex
from collections.abc import Iterator, Sequence

from jobs.contract.terms import EngineMode
from orchestrator.asked.cells import Cell
from orchestrator.concluded.record import Record
from orchestrator.reports import asking
from orchestrator.reports.foreign import block, code, prose
from orchestrator.reports.reproducing import Story, plain, snippet
from orchestrator.reports.rows import CellRow

LOG_LINES = 60
TITLE_CHARS = 120
ASKED_OF = {
    "target.attention_backend": "attention backend",
    "draft.attention_backend": "the draft's attention backend",
    "target.moe_backend": "MoE backend",
    "draft.moe_backend": "the draft's MoE backend",
    "target.kv_cache_dtype": "KV-cache dtype",
    "draft.kv_cache_dtype": "the draft's KV-cache dtype",
    "runner": "model runner",
    "block_size": "block size",
}


def to_markdown(story: Story, row: CellRow, log: Sequence[str]) -> str:
    return "\n".join(_lines(story, row, log)) + "\n"


def title(story: Story, row: CellRow) -> str:
    """One line; where a request was dropped it says that, else how it failed."""
    where = f"({_card(story.cell)}, vLLM {_version(story.record)})"
    dropped = [
        f"{ASKED_OF[name]} {request.asked} is ignored, {request.got or 'nothing'} is used"
        for name, request in row.requests.items()
        if request.verdict == "dropped"
    ]
    if dropped:
        return f"[Bug]: {'; '.join(dropped)} {where}"
    cause = row.failure.cause if row.failure else "; ".join(row.reasons)
    short = " ".join((cause or "it does otherwise than expected").split())
    room = TITLE_CHARS - len(where)
    return f"[Bug]: {short if len(short) <= room else f'{short[: room - 1]}…'} {where}"


def _lines(story: Story, row: CellRow, log: Sequence[str]) -> Iterator[str]:
    cell, record = story.cell, story.record
    yield f"# {prose(title(story, row))}"
    yield from _section("Your current environment", _environment(cell, record))
    yield from _section("Describe the bug", _bug(story, row))
    yield from _section("How to reproduce", _reproduced(story))
    if row.failure is not None and row.failure.excerpt:
        yield from _section("Where it comes from", [block("\n".join(row.failure.excerpt))])
    if log:
        yield from _section("Log", [*_folded("the end of it", block("\n".join(log)))])


def _environment(cell: Cell, record: Record) -> Iterator[str]:
    report = record.attempt.report if record.attempt else None
    versions = {"vllm": _version(record), **(report.versions if report else {})}
    yield from (f"- {prose(name)}: {code(value)}" for name, value in versions.items())
    build = cell.build
    source = build.release and f"{build.distribution} {build.release}"
    yield f"- installed: {code(source or build.wheel or str(build.interpreter))}"
    if build.checkout:
        yield "- with Python files of a checkout over it"
    for patch in build.patches:
        yield f"- patched: {code(patch.name)} ({code(patch.sha256[:12])})"
    device = dict(report.device) if report else {}
    if cell.engine_mode is EngineMode.EMULATED:
        product = cell.hardware.product or cell.axis("hardware")
        yield (
            f"- device: **none**. {prose(product)} was emulated: vLLM's own start-up code ran, "
            "unchanged, in a process that believes it has the card, on tensors without storage. "
            "No kernel ran. What was pretended is listed by `vllm-matrix explain`."
        )
    elif device:
        yield from (f"- device {prose(name)}: {code(value)}" for name, value in device.items())


def _bug(story: Story, row: CellRow) -> Iterator[str]:
    asked = asking.requests(story.cell)
    yield f"Model: {prose(asking.model(story.cell))}"
    yield ""
    yield "| | asked | got | |"
    yield "|---|---|---|---|"
    for name, request in row.requests.items():
        if request.asked is not None or name.endswith("attention_backend"):
            cells = (name, request.asked or "nothing", request.got or "nothing", request.verdict)
            yield f"| {' | '.join(map(prose, cells))} |"
    if not row.requests:
        wanted = ", ".join(f"{name} {value}" for name, value in asked.items())
        yield f"| all | {prose(wanted or 'nothing')} | nothing |  |"
    layout = [f"KV layout {row.kv_layout}"] if row.kv_layout else []
    runner = [f"model runner {row.runner}"] if row.runner else []
    if layout or runner:
        yield f"\n{prose(', '.join([*layout, *runner]))}."
    yield ""
    if row.failure is not None:
        where = f" in {row.failure.phase}" if row.failure.phase else ""
        yield f"What is wrong{where}: {prose(row.failure.cause)}"
    said = row.failure.cause if row.failure else ""
    yield from (f"- {prose(reason)}" for reason in row.reasons if reason not in said)


def _reproduced(story: Story) -> Iterator[str]:
    cell = story.cell
    if cell.engine_mode is EngineMode.EMULATED:
        product = cell.hardware.product or cell.axis("hardware")
        yield (
            f"On {prose(product)}, which I don't have, this should show it. Without one, "
            f"{code(f'vllm-matrix reproduce {shlex.quote(story.run)} {cell.id}')} writes a script "
            "that shows it in emulation."
        )
    else:
        yield "In an environment with this vLLM:"
    yield ""
    variables = plain.variables(cell)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    install = shlex.join(["uv", "pip", "install", *plain.installs(cell.build)])
    yield block("\n".join([install, *lines, "python program.py"]))
    models = dict(story.ingredients.models)
    if models:
        yield "\nThe model is a configuration without weights:"
    for path, text in models.items():
        yield from _folded(path, block(text.rstrip("\n")))
    yield f"\n{code('program.py')}:"
    yield block(snippet.program(cell, story.record.attempt)).replace("text\n", "python\n", 1)


def _section(name: str, lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    yield f"\n### {name}\n"
    yield from lines


def _folded(summary: str, text: str) -> Iterator[str]:
    yield f"\n<details>\n<summary>{prose(summary)}</summary>\n"
    yield text
    yield "\n</details>"


def _card(cell: Cell) -> str:
    mode = ", emulated" if cell.engine_mode is EngineMode.EMULATED else ""
    return f"{cell.axis('hardware')}{mode}"


def _version(record: Record) -> str:
    return record.build.vllm_version if record.build else "of an unknown version"
