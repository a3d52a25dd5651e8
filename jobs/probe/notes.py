"""What could not be read, and why."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jobs.probe import wording


@dataclass(frozen=True, slots=True)
class Notes:
    lines: list[str] = field(default_factory=list)

    def attempt(self, what: str, read: Callable[[], Any], otherwise: Any) -> Any:
        # A version of vLLM may keep a fact elsewhere, or not have it at all. The cell's
        # result must not depend on that: whatever happens is noted.
        try:
            return read()
        except Exception as error:  # noqa: BLE001
            why = f"{type(error).__name__}: {wording.of(error)}"
            self.lines.append(wording.plain(f"{what} could not be read: {why}"))
            return otherwise
