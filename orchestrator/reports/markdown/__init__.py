"""The matrix in GitHub's Markdown: what decides comes first, and all else is folded away."""

from dataclasses import replace
from pathlib import PurePath

from orchestrator.reports import foreign, wording
from orchestrator.reports.document import Document
from orchestrator.reports.fitting import Limit, fit
from orchestrator.reports.markdown.parts import parts


def _as_a_comment(text: str) -> int:
    """GitHub does not say whether it counts code points or UTF-16, nor how it counts newlines."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2 + text.count("\n")


def _in_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


WHOLE = Limit(most=1 << 40)
COMMENT = Limit(most=65_536, size=_as_a_comment)
SUMMARY = Limit(most=1 << 20, size=_in_bytes)
"""GitHub's summary of one step. An annotation of Buildkite's has the same limit."""


def to_markdown(report: Document) -> str:
    return _text(report, WHOLE)


def to_comment(report: Document, page: str | None = None) -> str:
    """
    For a pull request. It begins with a mark that nobody sees, by which the next one of the same
    suite can take its place. *page* is where the run's files are.
    """
    mark = f"<!-- vllm-matrix {report.suite} -->\n"
    return _text(report, COMMENT, before=mark, page=page)


def to_summary(report: Document, page: str | None = None, *, taken: int = 0) -> str:
    """For the page of a CI job, of which *taken* bytes are taken already."""
    return _text(report, replace(SUMMARY, most=SUMMARY.most - taken), page=page)


def _text(report: Document, limit: Limit, before: str = "", page: str | None = None) -> str:
    return fit(
        before + _first(report, page), parts(report), _last(report), limit, _everything(report)
    )


def _first(report: Document, page: str | None) -> str:
    run = f"run [`{_name(report)}`](<{page}>)" if page else f"run `{_name(report)}`"
    lines = [f"**{foreign.prose(report.gate.sentence)}** (suite `{report.suite}`, {run})"]
    if report.proof is not None:
        lines.insert(0, f"**{foreign.prose(report.proof.sentence)}**")
    if report.comparison is not None:
        base = foreign.code(PurePath(report.comparison.base).name)
        lines.append(f"Since {base}: {foreign.prose(report.comparison.sentence)}")
    return "\n\n".join(lines)


def _last(report: Document) -> str:
    note = wording.emulation(report)
    hint = f"`vllm-matrix explain {_name(report)} CELL` tells all that is known of one cell."
    return "\n\n".join([*([f"<sub>{foreign.prose(note)}</sub>"] if note else []), hint])


def _everything(report: Document) -> str:
    return f"All of it is in `matrix.md` of the run `{_name(report)}`."


def _name(report: Document) -> str:
    return PurePath(report.run).name
