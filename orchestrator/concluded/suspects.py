"""Is what the build changed in vLLM to blame? Pure."""

import re
from collections.abc import Iterable
from pathlib import Path

from jobs.contract.attempts import Attempt
from jobs.contract.builds import Patch, ProvisionedBuild
from jobs.contract.seen import ExceptionSeen
from orchestrator.concluded.classify import decisive
from orchestrator.taxonomy import UNEXPLAINED

CARELESS = ("SyntaxError", "IndentationError", "NameError", "ImportError", "ModuleNotFoundError")

CHANGED_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)


def fault(build: ProvisionedBuild, attempt: Attempt, category: str | None) -> str | None:
    """The category that says so, where the build's own files are the cause."""
    report = attempt.report
    if report is None or report.vllm_path is None:
        return None
    if report.sources != build.sources:
        return "build_mismatch"
    seen = decisive(attempt)
    if category not in UNEXPLAINED or seen is None:
        return None
    if not any(_is_about(seen, file) for file in build.sources):
        return None
    return "build_broken" if seen.type.endswith(CARELESS) else "patch_raised"


def patches_about(attempt: Attempt, patches: Iterable[Patch]) -> tuple[str, ...]:
    """The patches that changed a file in which the attempt failed."""
    told = _where_it_failed(attempt)
    return tuple(
        patch.name
        for patch in patches
        if any(file in told for file in CHANGED_FILE.findall(patch.text))
    )


def _is_about(seen: ExceptionSeen, file: str) -> bool:
    """Of code that can't be compiled, the name is in the message only."""
    return f"{file}:" in (seen.where or "") or f"({Path(file).name}, line" in seen.message


def _where_it_failed(attempt: Attempt) -> str:
    if attempt.report is None or attempt.report.failure is None:
        return attempt.log_tail
    return " ".join(f"{seen.where} {seen.message}" for seen in attempt.report.failure.chain)
