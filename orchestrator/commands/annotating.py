"""A job on GitHub is told what a run found: beside the files that it is about, and on its page."""

from orchestrator import github
from orchestrator.commands import ci
from orchestrator.github import Annotation
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.reports import markdown
from orchestrator.reports.annotations import annotations
from orchestrator.reports.document import Document


def tell(run: RunDirectory, report: Document) -> None:
    if github.listens():
        github.annotate(found(run, report))
        summarise(report)


def found(run: RunDirectory, report: Document) -> list[Annotation]:
    # Hydra takes its time to be imported.
    from orchestrator.commands.conf_places import places

    return annotations(report, places(run.asked(), github.workspace()))


def summarise(report: Document) -> None:
    if (path := github.summary()) is not None:
        taken = path.stat().st_size if path.exists() else 0
        text = markdown.to_summary(report, ci.page(), taken=taken)
        # Of one that is too long, GitHub shows nothing at all.
        if taken + markdown.SUMMARY.size(text) <= markdown.SUMMARY.most:
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
