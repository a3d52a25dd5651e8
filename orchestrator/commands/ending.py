"""What a person sees at the end of a run, and what is left in its folder."""

from orchestrator import reports
from orchestrator.commands import annotating
from orchestrator.commands.screen import screen
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.reports import terminal
from orchestrator.run import Result


def show(run: RunDirectory, result: Result) -> None:
    console = screen()
    console.print()
    report = reports.document_of(run, result)
    console.print(terminal.render(report))
    console.print(str(run.path), style="dim", highlight=False, markup=False)
    annotating.tell(run, report)
