"""A run of cells that take no time, for a process with a terminal: FOLDER CELLS."""

import sys
import time
from pathlib import Path

from rich.console import Console

from jobs.contract.asked import ProbeRequest
from jobs.contract.terms import Check, Phase
from jobs.node.cell_files import CellFiles
from orchestrator.running import progress
from orchestrator.running.forecast import Work
from orchestrator.running.progress import ConsoleProgress
from tests.builders import a_record

AT_ONCE = 3
STEP_S = 0.01


def main(root: Path, cells: int) -> None:
    progress.LOOK_EVERY_S = 0.0
    folders = {f"cpu/model-{number}/auto/build": root / str(number) for number in range(cells)}
    work = {cell_id: Work(seconds=6.0) for cell_id in folders}
    waiting = {cell_id: str(folder) for cell_id, folder in folders.items()}
    with ConsoleProgress(Console()) as shown:
        shown.planned(work, kept=0, cells=cells, at_once=AT_ONCE)
        for number, cell_id in enumerate(folders):
            for running in [*folders][number : number + AT_ONCE]:
                _begin(running, CellFiles(folder=folders[running]), first=running == cell_id)
            shown.look(waiting)
            time.sleep(0.6 if number == 0 else STEP_S)
            shown.look(waiting)
            del waiting[cell_id]
            shown.ended(a_record(cell_id))


def _begin(cell_id: str, files: CellFiles, *, first: bool) -> None:
    """As a node does; the first of those that run has got as far as to load its model."""
    files.folder.mkdir(exist_ok=True)
    request = ProbeRequest(cell_id=cell_id, attempt=1, check=Check.INIT, engine_args={})
    files.request.write_text(str(request))
    if first:
        files.phase.write_text(f'{{"phase": "{Phase.LOAD}"}}')


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
