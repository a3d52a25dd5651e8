"""Which cells there are: the product of the axes, less what cannot exist or was not selected."""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from jobs.contract.asked import Deadlines
from jobs.contract.builds import BuildSpec
from jobs.contract.terms import STRICT, Check, EngineMode, Isolation
from orchestrator.asked import deadlines
from orchestrator.asked.conf_files import AXES
from orchestrator.asked.config import EMULATED, Backend, Config, Expectation, Hardware, Model, Suite
from orchestrator.errors import ConfigError

SHIPPED = "shipped:"
PROBE_CODE = Path(__file__).parents[2] / "jobs"
MODELS = PROBE_CODE / "models"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One combination to try. Its id is its name everywhere: logs, files, reports, globs."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    id: str
    """hardware/model/backend/build, or hardware-emulated/model/backend/build"""

    hardware: Hardware
    model: Model
    backend: Backend
    build: BuildSpec
    check: Check
    engine_mode: EngineMode
    isolation: Isolation
    deadlines: Deadlines
    attempts: int
    secrets: tuple[str, ...] = ()
    expectation: Expectation

    def axis(self, name: str) -> str:
        """The cell's entry of the axis, as conf/ names it."""
        part = self.id.split("/")[AXES.index(name)]
        return part.removesuffix(EMULATED) if name == "hardware" else part

    def digest(self, build_digest: str) -> str:
        """Of everything that decides what the cell does, given the build's own digest."""
        return hashed(self.parts(build_digest))

    def parts(self, build_digest: str) -> dict[str, str]:
        """What the digest is made of, by name: what differs says why a cell runs again."""
        # How a cell is judged, where it fits and how long it may take do not change what it does.
        deciding = {
            "hardware": self._seen_of_hardware(),
            "model": dataclasses.asdict(self.model) | {"memory_gib": None},
            "model files": _model_files(self.model),
            "backend": dataclasses.asdict(self.backend) | {"vendors": None},
            "build": build_digest,
            "check": self.check,
            "engine_mode": self.engine_mode,
            "isolation": self.isolation,
            "probe": _probe_digest(),
        }
        return {name: hashed(part) for name, part in deciding.items()}

    def _seen_of_hardware(self) -> Any:
        """A real card is what it is, whatever is said of it; an emulated one is what is said."""
        if self.engine_mode is EngineMode.REAL:
            return self.axis("hardware")
        return dataclasses.asdict(dataclasses.replace(self.hardware, source=None))


def expand(config: Config, builds: dict[str, BuildSpec]) -> tuple[Cell, ...]:
    """Every cell that can exist and is selected, in the order of the config's axes."""
    return tuple(cell for cell in possible(config, builds) if _selected(cell.id, config.suite))


def possible(config: Config, builds: dict[str, BuildSpec]) -> tuple[Cell, ...]:
    """Every cell that can exist: a draft's backend needs a draft, and so on."""
    return tuple(cell for cell in _product(config, builds) if _can_exist(cell))


def merge(parts: Iterable[Sequence[Cell]]) -> tuple[Cell, ...]:
    """One list out of several: a cell that two of them name must be the same in both."""
    cells: dict[str, Cell] = {}
    conflicts: list[str] = []
    for cell in itertools.chain.from_iterable(parts):
        known = cells.setdefault(cell.id, cell)
        if known != cell:
            differing = [f.name for f in dataclasses.fields(Cell) if _differ(known, cell, f.name)]
            conflicts.append(f"{cell.id}: its {', '.join(differing)} differ from job to job")
    if conflicts:
        raise ConfigError(
            "a multirun makes one matrix, so a cell can only be described in one way;"
            " sweep over hardware, model, backend, build:",
            dict.fromkeys(conflicts),
        )
    return tuple(cells.values())


def matches(cell_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(cell_id, pattern) for pattern in patterns)


def _product(config: Config, builds: dict[str, BuildSpec]) -> Iterator[Cell]:
    axes = (config.hardware, config.model, config.backend, builds)
    mark = EMULATED if config.engine_mode is EngineMode.EMULATED else ""
    for h, m, b, v in itertools.product(*axes):
        cell_id = f"{h}{mark}/{m}/{b}/{v}"
        yield Cell(
            id=cell_id,
            hardware=config.hardware[h],
            model=config.model[m],
            backend=config.backend[b],
            build=builds[v],
            check=config.suite.check,
            engine_mode=config.engine_mode,
            isolation=config.isolation,
            deadlines=_deadlines(config, config.model[m]),
            attempts=config.attempts,
            secrets=config.secrets,
            expectation=_expectation(cell_id, config.suite),
        )


def _deadlines(config: Config, model: Model) -> Deadlines:
    return deadlines.of_attempt(
        config.engine_mode,
        model.memory_gib,
        attempt_s=config.deadline_s,
        quiet_s=config.quiet_s,
        phases_s=config.deadlines,
    )


def _can_exist(cell: Cell) -> bool:
    backend, model = cell.backend, cell.model
    asks_for_draft = any(dataclasses.astuple(backend.draft))
    asks_for_moe = backend.target.moe_backend or backend.draft.moe_backend
    return (
        cell.hardware.vendor in backend.vendors
        and (model.speculative is not None or not asks_for_draft)
        and (model.moe or not asks_for_moe)
    )


def _selected(cell_id: str, suite: Suite) -> bool:
    return (
        matches(cell_id, suite.select)
        and not matches(cell_id, suite.exclude)
        and all(
            fnmatchcase(cell_id, rule.only)
            for rule in suite.constraints
            if fnmatchcase(cell_id, rule.when)
        )
    )


def _expectation(cell_id: str, suite: Suite) -> Expectation:
    fitting = [rule.expect for rule in suite.expectations if fnmatchcase(cell_id, rule.cells)]
    return fitting[-1] if fitting else Expectation()


def _differ(one: Cell, other: Cell, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _model_files(model: Model) -> dict[str, str]:
    """Hashes of the configurations that decide which model is built."""
    paths = [model.path]
    if model.speculative and isinstance(model.speculative.get("model"), str):
        paths.append(model.speculative["model"])
    return {path: digest for path in paths if (digest := _folder_digest(_folder(path)))}


def _folder(path: str) -> Path:
    return MODELS / path.removeprefix(SHIPPED) if path.startswith(SHIPPED) else Path(path)


def _folder_digest(folder: Path) -> str | None:
    """Of the small files only: weights are named by their path, not read."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("*.json"), *folder.glob("*.py")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@cache
def _probe_digest() -> str:
    """Of our code that an engine meets: another probe may see, or pretend, other things."""
    digest = hashlib.sha256()
    for file in sorted([*PROBE_CODE.glob("probe/**/*.py"), *PROBE_CODE.glob("contract/*.py")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def hashed(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
