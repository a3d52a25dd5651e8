"""Which cells keep the verdict of an earlier run, and why the others run."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.contract.builds import BuildSpec
from jobs.node.builds.errors import BuildError
from jobs.node.builds.provision import digest_of
from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import ClusterChoice
from orchestrator.concluded.judge import Judgement, Verdict, judge, not_run
from orchestrator.concluded.record import Record
from orchestrator.errors import ClusterError
from orchestrator.kept.run_directory import RUNS_READ, RunDirectory, newest_first
from orchestrator.taxonomy import taxonomy

NEVER = "no verdict yet"
ANEW = "resume=false runs it anew"
LUCK = "failed in a way that another try may change"
OLD = "an earlier version of vllm-matrix ran it"
APART = "its speed is to be measured in turns with that of the other builds"
UNKNOWN = "its build is not at hand to be compared"
REASONS_SHOWN = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """The newest verdict on a cell."""

    record: Record
    run: str
    """The name of the run that has the record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reuse:
    kept: dict[str, Record]
    """By cell id; the attempt of then, with the verdict of now."""

    why: dict[str, str]
    """Cell id to the reason that it runs."""

    def left(self, cells: Iterable[Cell]) -> tuple[Cell, ...]:
        """Those that run."""
        return tuple(cell for cell in cells if cell.id in self.why)


def seen_before(
    runs: Path,
    suite: str | None,
    cells: Iterable[Cell],
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Seen]:
    """In the newest runs of the suite, or of any."""
    seen: dict[str, Seen] = {}
    missing = {cell.id for cell in cells}
    for path in newest_first(runs, suite)[:RUNS_READ]:
        if not missing:
            break
        try:
            found = {
                record.cell_id: Seen(record=record, run=path.name)
                for record in RunDirectory(path).records
                if record.attempt is not None and record.cell_id in missing
            }
        except ClusterError as error:
            say(f"no verdict of {path.name} is kept: {error}")
            continue
        seen |= found
        missing -= found.keys()
    return seen


def digests_at_hand(cells: Iterable[Cell], cluster: ClusterChoice) -> dict[str, str]:
    """By cell id: the digests of builds, as far as they can be told before anything starts."""
    known: list[tuple[BuildSpec, str | None]] = []
    digests: dict[str, str] = {}
    for cell in cells:
        if not any(spec == cell.build for spec, _ in known):
            known.append((cell.build, _digest_at_hand(cell.build, cluster)))
        digest = next(digest for spec, digest in known if spec == cell.build)
        if digest is not None:
            digests[cell.id] = digest
    return digests


def decide(
    cells: Sequence[Cell],
    seen: Mapping[str, Seen],
    digests: Mapping[str, str],
    *,
    own: str | None = None,
) -> Reuse:
    """*own* is the run that goes on, if one does: there each cell has had its attempts."""
    kept: dict[str, Record] = {}
    why: dict[str, str] = {}
    for cell in cells:
        match _kept_or_why(cell, seen.get(cell.id), digests.get(cell.id), own):
            case Record() as record:
                kept[cell.id] = record
            case reason:
                why[cell.id] = reason
    for cell_id in _apart(cells, kept):
        del kept[cell_id]
        why[cell_id] = APART
    return Reuse(kept=kept, why=why)


def _apart(cells: Iterable[Cell], kept: Mapping[str, Record]) -> Iterator[str]:
    """Of what is kept: cells whose speed was not measured in turns with all of their question."""
    sessions: dict[str, dict[str, str | None]] = {}
    for cell in cells:
        if cell.speed is not None:
            rounds = kept[cell.id].rounds if cell.id in kept else ()
            session = rounds[0].session if rounds else None
            sessions.setdefault(cell_ids.question(cell.id), {})[cell.id] = session
    for of_question in sessions.values():
        if len({*of_question.values()}) > 1:
            yield from (cell_id for cell_id in of_question if cell_id in kept)


def anew(cells: Iterable[Cell], seen: Mapping[str, Seen]) -> Reuse:
    """Nothing is kept, whatever there is."""
    return Reuse(kept={}, why={cell.id: ANEW if cell.id in seen else NEVER for cell in cells})


def settled(reuse: Reuse, seen: Mapping[str, Seen]) -> str | None:
    """The name of the one run that has all these verdicts already, if there is one."""
    if reuse.why:
        return None
    runs = {seen[cell_id].run for cell_id in reuse.kept}
    same = all(seen[i].record.judgement == record.judgement for i, record in reuse.kept.items())
    return runs.pop() if same and len(runs) == 1 else None


def take_over(reuse: Reuse, run: RunDirectory) -> None:
    """
    Put into the run what is kept.

    What it has of cells that run again does not count any more, from now on: the run may
    be stopped before their turn comes.
    """
    there = {record.cell_id: record for record in run.records}
    new = [record for cell_id, record in reuse.kept.items() if there.get(cell_id) != record]
    new += [
        Record(cell_id=cell_id, judgement=not_run(f"it is to run again: {why}"))
        for cell_id, why in reuse.why.items()
        if cell_id in there and there[cell_id].attempt is not None
    ]
    if new:
        run.records.append(*new)


def sentences(reuse: Reuse) -> Iterator[str]:
    """For a person; nothing where nothing was ever run."""
    sources = Counter(record.kept_from or "this run" for record in reuse.kept.values())
    if sources:
        parts = ", ".join(f"{count} of {source}" for source, count in sources.items())
        yield f"verdicts that are kept: {parts}"
    reasons = Counter(reuse.why.values())
    if sources or [*reasons] != [NEVER]:
        for reason, count in reasons.most_common(REASONS_SHOWN):
            yield f"{count} {'cell runs' if count == 1 else 'cells run'}: {reason}"


def _digest_at_hand(spec: BuildSpec, cluster: ClusterChoice) -> str | None:
    """An interpreter is the nodes', and those of a cluster may have another below its name."""
    if cluster.address and spec.interpreter:
        return None
    with suppress(BuildError, OSError):
        return digest_of(spec)
    return None


def _kept_or_why(
    cell: Cell, before: Seen | None, build_digest: str | None, own: str | None
) -> Record | str:
    if before is None:
        return NEVER
    if not before.record.parts:
        return OLD
    if build_digest is None:
        return UNKNOWN
    if changes := [*_changes(cell, before.record, build_digest)]:
        return f"{', '.join(changes)} changed"
    judgement = _judged_now(cell, before.record)
    if before.run != own and _may_change(judgement):
        return LUCK
    source = before.record.kept_from or (None if before.run == own else before.run)
    return dataclasses.replace(before.record, judgement=judgement, kept_from=source)


def _changes(cell: Cell, record: Record, build_digest: str) -> Iterator[str]:
    now = cell.parts(build_digest)
    for name in now:
        if record.parts.get(name) != now[name]:
            patches = _changed_patches(cell.build, record) if name == "build" else ""
            yield f"{name} ({patches})" if patches else name


def _changed_patches(spec: BuildSpec, record: Record) -> str:
    now = {patch.name: patch.sha256 for patch in spec.patches}
    then = record.build.patches if record.build else {}
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return ", ".join(f"patch {name}" for name in names)


def _judged_now(cell: Cell, record: Record) -> Judgement:
    """What is expected may have changed, and costs no other attempt."""
    if record.attempt is None or record.build is None:
        return record.judgement
    return judge(cell, record.build, record.attempt)


def _may_change(judgement: Judgement) -> bool:
    if judgement.verdict is Verdict.PASSED or judgement.category is None:
        return False
    return not taxonomy().categories[judgement.category].deterministic
