"""What is compared: a run, or one build of it, by the name that people give it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.asked.conf_files import nearest
from orchestrator.concluded import comparison, matrix
from orchestrator.concluded.comparison import Side
from orchestrator.concluded.matrix import Matrix
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.kept import run_directory
from orchestrator.kept.run_directory import LATEST, RunDirectory

RUNS = Path("runs")
PREVIOUS, SHIPPED = "previous", "shipped"
EARLIER = (PREVIOUS, SHIPPED)
"""Which run they mean is up to the run that they are a baseline of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """`RUN` or `RUN:BUILD`, and what it means."""

    run: RunDirectory
    build: str | None

    def __str__(self) -> str:
        """As the side is called."""
        return f"{self.run.path.name}:{self.build}" if self.build else self.run.path.name

    def side(self) -> Side:
        """Raises ConfigError if the run can't be read, or has no such build."""
        try:
            there = whole(self.run)
        except ClusterError as error:
            raise ConfigError(str(error)) from None
        if self.build is None:
            return there
        builds = sorted({cell.build.name for cell in there.matrix.cells})
        if self.build not in builds:
            raise ConfigError(
                f"{there.name} has no build {self.build}; it has: {', '.join(builds)}."
                f"{nearest(self.build, builds)}"
            )
        return comparison.of_build(there, self.build)


def whole(run: RunDirectory) -> Side:
    asked = run.asked()
    there = matrix.build(asked.cells, run.records, asked.evidence)
    return Side(name=run.path.name, matrix=there)


def named(name: str, runs: Path = RUNS) -> Named:
    """A run by its path, its name or `latest`; with `:BUILD` behind it, one build of it."""
    try:
        return Named(run=run_directory.find(name, runs), build=None)
    except ConfigError:
        run, colon, build = name.rpartition(":")
        if not colon:
            raise
        return Named(run=run_directory.find(run, runs), build=build)


def load(names: Sequence[str], runs: Path = RUNS) -> list[Side]:
    """All of them. Raises ConfigError with what is wrong with any."""
    sides: list[Side] = []
    mistakes: list[str] = []
    for name in names:
        try:
            sides.append(named(name, runs).side())
        except ConfigError as error:
            mistakes.append(f"{name}: {error}")
    if mistakes:
        raise ConfigError("these can't be compared:", dict.fromkeys(mistakes))
    return sides


def baseline(run: RunDirectory, name: str) -> Side:
    """
    For a run: `previous` is the one of its suite before it, `shipped` the latest of these that
    shipped, and both are nothing where there is none.

    Raises ConfigError if there is none of that name, beside the run or where the path says.
    """
    word, colon, build = name.partition(":")
    if word not in EARLIER:
        return named(name, run.path.parent).side()
    before = run_directory.before(run, shipped=word == SHIPPED)
    if before is None:
        return Side(name=f"no {word} run", matrix=Matrix(cells=()))
    return Named(run=before, build=build if colon else None).side()


def check(name: str | None, runs: Path) -> None:
    """Raises ConfigError if the baseline of a run that is to begin can't be used."""
    try:
        _check(name, runs)
    except ConfigError as error:
        raise ConfigError("the run would have no baseline:", [f"gate.baseline: {error}"]) from None


def _check(name: str | None, runs: Path) -> None:
    word = name.partition(":")[0] if name else None
    if word == LATEST:
        raise ConfigError(f"{LATEST} would be the run itself; {PREVIOUS} is the one before it")
    if name is not None and word not in EARLIER:
        named(name, runs).side()


def why_nothing_in_common(base: Side, candidate: Side) -> str:
    """For people, of two sides of which no cell asks what another does."""
    modes = [{str(cell.engine_mode) for cell in side.matrix.cells} for side in (base, candidate)]
    why = "; ".join(_reasons(base, candidate, modes))
    return f"{candidate.name} asks nothing that {base.name} does: {why}"


def _reasons(base: Side, candidate: Side, modes: Sequence[set[str]]) -> Iterator[str]:
    if not modes[0] & modes[1]:
        one, other = (" and ".join(sorted(each)) for each in modes)
        yield (
            f"the engines of {base.name} are {one}, those of {candidate.name} {other}; what a real "
            "card makes of a prediction is told where its records are `evidence`"
        )
        return
    for side in (base, candidate):
        example = next((cell.id for cell in side.matrix.cells), "no cell")
        yield f"{side.name} has {len(side.matrix.cells)} cells, such as {example}"
