"""Which cells there are: the product of the axes, less what cannot exist or was not selected."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jobs.contract.asked import NODES, Deadlines
from jobs.contract.builds import BuildSpec
from jobs.contract.terms import STRICT, Check, EngineMode, Isolation
from orchestrator.asked import cell_ids, deadlines, digests
from orchestrator.asked.conf_files import AXES
from orchestrator.asked.config import (
    EMULATED,
    Asked,
    Backend,
    Config,
    Expectation,
    Hardware,
    Model,
    Speed,
)
from orchestrator.asked.selection import Selection
from orchestrator.errors import ConfigError


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
    speed: Speed | None = None
    """How its speed is measured; None: it is not."""

    suite: str = dataclasses.field(default="", compare=False)
    """The first that asks for it."""

    @property
    def nodes(self) -> int:
        """So many does its engine span."""
        return int(self.model.engine_args.get(NODES, 1))

    @property
    def rounds(self) -> int:
        """So many engines are started."""
        return 1 if self.speed is None else self.speed.rounds

    @property
    def check_digest(self) -> str:
        if self.speed is None:
            return digests.of_word(self.check)
        # What counts as a difference changes nothing that is done.
        done = dataclasses.asdict(self.speed) | {"margin": None, "confidence": None}
        return digests.hashed([self.check, done])

    def axis(self, name: str) -> str:
        """The cell's entry of the axis, as conf/ names it."""
        part = cell_ids.parts(self.id)[AXES.index(name)]
        return part.removesuffix(EMULATED) if name == "hardware" else part

    def parts(self, build_digest: str) -> dict[str, str]:
        """
        Digests of everything that decides what the cell does, by name, given its build's own:
        which of them differ says why a cell runs again. The cell's digest is of them all.
        """
        # How a cell is judged, where it fits and how long it may take do not change what it does.
        return {
            "hardware": self._seen_of_hardware(),
            "model": digests.of_model(self.model),
            "model files": digests.of_model_files(self.model),
            "backend": digests.of_backend(self.backend),
            "build": digests.of_word(build_digest),
            "check": self.check_digest,
            "engine_mode": digests.of_word(self.engine_mode),
            "isolation": digests.of_word(self.isolation),
            "probe": digests.of_probe(),
        }

    def _seen_of_hardware(self) -> str:
        """A real card is what it is, whatever is said of it; an emulated one is what is said."""
        if self.engine_mode is EngineMode.REAL:
            return digests.of_word(self.axis("hardware"))
        return digests.of_hardware(self.hardware)


def expand(config: Config, builds: dict[str, BuildSpec]) -> tuple[Cell, ...]:
    """Every cell that can exist and is selected, in the order of the config's axes."""
    return tuple(_cells(config, builds))


def possible(config: Config, builds: Iterable[str]) -> tuple[str, ...]:
    """The id of every cell that can exist: a draft's backend needs a draft, and so on."""
    return tuple("/".join(names) for names in _product(config, builds))


def merge(parts: Iterable[Sequence[Cell]]) -> tuple[Cell, ...]:
    """One list out of several: a cell that two of them name must be the same in both."""
    cells: dict[str, Cell] = {}
    conflicts: list[str] = []
    for cell in itertools.chain.from_iterable(parts):
        known = cells.setdefault(cell.id, cell)
        if known is not cell and known != cell:
            compared = [field.name for field in dataclasses.fields(Cell) if field.compare]
            differing = [name for name in compared if _differ(known, cell, name)]
            conflicts.append(f"{cell.id}: its {', '.join(differing)} differ from job to job")
    if conflicts:
        raise ConfigError(
            "a multirun makes one matrix, so a cell can only be described in one way;"
            " sweep over hardware, model, backend, build:",
            dict.fromkeys(conflicts),
        )
    return tuple(cells.values())


def _cells(config: Config, builds: dict[str, BuildSpec]) -> Iterator[Cell]:
    selection = Selection(config.suite)
    of_models = {name: _deadlines(config, model) for name, model in config.model.items()}
    for names in _product(config, builds):
        cell_id = "/".join(names)
        if (expectation := selection.expectation(cell_id)) is None:
            continue
        hardware, model, backend, build = names
        yield Cell(
            id=cell_id,
            hardware=config.hardware[hardware.removesuffix(EMULATED)],
            model=config.model[model],
            backend=config.backend[backend],
            build=builds[build],
            check=config.suite.check,
            engine_mode=config.engine_mode,
            isolation=config.isolation,
            deadlines=of_models[model],
            attempts=config.attempts,
            secrets=config.secrets,
            expectation=expectation,
            speed=config.suite.speed if config.suite.check is Check.SPEED else None,
            suite=config.suite.name,
        )


def _product(config: Config, builds: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    """The names of the entries that can go together."""
    mark = EMULATED if config.engine_mode is EngineMode.EMULATED else ""
    builds = tuple(builds)
    for h, m, b in itertools.product(config.hardware, config.model, config.backend):
        if _can_exist(config.hardware[h], config.model[m], config.backend[b]):
            yield from ((f"{h}{mark}", m, b, v) for v in builds)


def _deadlines(config: Config, model: Model) -> Deadlines:
    return deadlines.of_attempt(
        config.engine_mode,
        model.memory_gib,
        attempt_s=config.deadline_s,
        quiet_s=config.quiet_s,
        phases_s=config.deadlines,
        measures=config.suite.check is Check.SPEED,
    )


def _can_exist(hardware: Hardware, model: Model, backend: Backend) -> bool:
    asks_for_draft = backend.draft != Asked()
    asks_for_moe = backend.target.moe_backend or backend.draft.moe_backend
    return (
        hardware.vendor in backend.vendors
        and (model.speculative is not None or not asks_for_draft)
        and (model.moe or not asks_for_moe)
    )


def _differ(one: Cell, other: Cell, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))
