"""
Which environment variables a probe sets before vLLM is imported, and why.

All are defaults: what the host or the user has set stays.
"""

import os
from pathlib import Path

from jobs.quiet import NO_USAGE_REPORTS

PROBE_FOLDER = "MATRIX_PROBE_FOLDER"
"""
Where the processes of one cell leave what only they see: phases, errors. Its name does
not start with VLLM_, since vLLM warns of such variables that it does not know.
"""

ROOT = Path(__file__).parents[2]
"""The folder that holds the package `jobs`."""

DEFAULTS = {
    **NO_USAGE_REPORTS,
    # One process: the root exception reaches the probe, and a cell starts in a third of the time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # GiB. Otherwise a CPU engine takes a share of the machine, which other cells run on too.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # A colour code inside a log line is noise in a record.
    "VLLM_LOGGING_COLOR": "0",
    # Tokenizers warn, and may deadlock, when a process that used their threads forks.
    "TOKENIZERS_PARALLELISM": "false",
}


def prepare() -> None:
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    _let_children_import_jobs()


def enter(folder: Path) -> None:
    """Tell every process of this cell where to leave what it sees."""
    os.environ[PROBE_FOLDER] = str(folder)


def folder() -> Path:
    return Path(os.environ[PROBE_FOLDER])


def _let_children_import_jobs() -> None:
    """An engine with several processes imports the worker extension in each of them."""
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if str(ROOT) not in entries:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *entries])
